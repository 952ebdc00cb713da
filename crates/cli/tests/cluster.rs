//! Faults of a cluster: several servers over a real Postgres, clients that note every acknowledgement, and a command
//! that notes every time it runs.
//!
//! It is not part of `cargo test`, because it takes a while and needs Postgres: `cargo xtask cluster` runs it, and with
//! `--long` for longer. WINDLASS_CLUSTER_SECONDS sets the time of each run.

#[cfg(test)]
#[path = "cluster"]
mod suite {
    mod check;
    mod clients;
    mod faults;
    mod fleet;
}
