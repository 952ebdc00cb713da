//! The provider crate from outside: goldens both ways, and real HTTP on loopback.

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
