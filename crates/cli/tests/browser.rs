//! Tests of the web page in a real browser: Chromium, the server and a simulated model.
//!
//! They are not part of `cargo test`, because not every machine has Chromium: `cargo xtask test` runs them.

#[cfg(test)]
mod browser {
    mod conversation;
    mod everybody;
    mod hostile;
    mod links;
    mod long;
    mod site;
    mod together;
}
