//! Sessions as a front end sees them: through the client.

#[cfg(test)]
mod suite {
    mod bed;
    mod commands;
    mod crash;
    mod feed;
    mod goals;
    mod keys;
    mod looking;
    mod queue;
    mod session_hooks;
    mod sessions;
    mod shell;
    mod surroundings;
    mod titles;
    mod undo;
}
