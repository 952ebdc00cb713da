//! The same suite against a Postgres server that it starts, and what only Postgres has.

#[cfg(test)]
#[path = "suite"]
mod suite {
    mod agents;
    #[path = "../postgres/bed.rs"]
    mod bed;
    #[path = "../postgres/blobs.rs"]
    mod blobs;
    mod books;
    mod content;
    #[path = "../postgres/copies.rs"]
    mod copies;
    #[path = "../postgres/crash.rs"]
    mod crash;
    mod events;
    mod exchanges;
    #[path = "../postgres/folders.rs"]
    mod folders;
    mod goals;
    mod leases;
    mod log;
    #[path = "../postgres/memory.rs"]
    mod memory;
    mod opening;
    mod processes;
    #[path = "../postgres/refusals.rs"]
    mod refusals;
    #[path = "../postgres/servers.rs"]
    mod servers;
    mod sessions;
    #[path = "../postgres/shared.rs"]
    mod shared;
    #[path = "../postgres/tables.rs"]
    mod tables;
    mod users;
}
