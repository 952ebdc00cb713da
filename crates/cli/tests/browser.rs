//! Tests of the web page in a real browser: Chromium, the server and a simulated model.
//!
//! They are not part of `cargo test`, because not every machine has Chromium: `cargo xtask test` runs them.

#[cfg(test)]
mod browser {
    mod below;
    mod conversation;
    mod everybody;
    mod fleet;
    mod hostile;
    mod links;
    mod long;
    mod push;
    mod site;
    mod together;
    mod work;
}
