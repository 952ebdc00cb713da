//! Faults of a cluster: several servers over a real Postgres, clients that note every acknowledgement and every event,
//! and a command that notes every time it runs.
//!
//! It is not part of `cargo test`, because it takes a while and needs Postgres: `cargo xtask cluster` runs it, and with
//! `--long` for longer. WINDLASS_CLUSTER_SECONDS sets the time of each run. Some tests need root or a package; the tasks
//! leave those out where they are missing, and say so.

#[cfg(test)]
#[cfg(target_os = "linux")]
#[path = "cluster"]
mod suite {
    mod cases;
    mod check;
    mod clients;
    mod disk;
    mod faults;
    mod fleet;
    mod network;
}
