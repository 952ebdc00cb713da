//! Tests of servers of a cluster with NATS between them, on servers that they start.
//!
//! They are not part of `cargo test`, because not every machine has Postgres and NATS: `cargo xtask test` runs them.

#[cfg(test)]
#[path = "nats"]
mod suite {
    mod carrier;
    mod faults;

    // The same conversations as over HTTP.
    #[path = "../postgres/children.rs"]
    mod children;
    #[path = "../postgres/cluster.rs"]
    mod cluster;
    // Some of it is for tests that only the other suite has.
    #[allow(dead_code)]
    #[path = "../postgres/store.rs"]
    mod store;
}
