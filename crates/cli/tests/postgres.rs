//! Tests of the binary with its sessions in Postgres, on a server that they start.
//!
//! They are not part of `cargo test`, because not every machine has Postgres: `cargo xtask test` runs them.

#[cfg(test)]
#[path = "suite"]
mod suite {
    mod crash;
    mod memory;
    mod memory_vectors;
    mod sessions;
    // Some of it is for tests that only the other suite has.
    #[allow(dead_code)]
    mod support;
    mod turn;
    mod users;

    #[path = "../postgres/carrier.rs"]
    mod carrier;
    #[path = "../postgres/children.rs"]
    mod children;
    #[path = "../postgres/cluster.rs"]
    mod cluster;
    #[path = "../postgres/copies.rs"]
    mod copies;
    #[path = "../postgres/places.rs"]
    mod places;
    #[path = "../postgres/server_crash.rs"]
    mod server_crash;
    #[path = "../postgres/settings.rs"]
    mod settings;
    #[path = "../postgres/store.rs"]
    mod store;
}
