//! Sessions as a front end sees them: through the client.

#[cfg(test)]
mod suite {
    mod bed;
    mod crash;
    mod feed;
    mod queue;
    mod sessions;
}
