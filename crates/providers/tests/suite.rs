//! Tests of the crate from outside: golden files in both directions, and real HTTP on loopback.

#[cfg(test)]
mod suite {
    mod corpus;
    mod golden;
    mod http;
    mod requests;
    mod secrets;
    mod support;
    mod valid;
}
