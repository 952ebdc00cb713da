//! The binary from outside: arguments, input and faults in; output, files, requests and exit codes out.

#[cfg(test)]
mod suite {
    mod cancel;
    mod exec;
    mod limits;
    mod support;
    mod turn;
}
