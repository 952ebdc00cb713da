//! The store as its users see it: through the ports.

#[cfg(test)]
mod suite {
    mod agents;
    mod bed;
    mod blobs;
    mod books;
    mod care;
    mod content;
    mod events;
    mod exchanges;
    mod goals;
    mod leases;
    mod log;
    mod opening;
    mod processes;
    mod sessions;
    mod users;
}
