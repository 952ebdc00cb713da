//! Tests of the binary from outside: arguments, input and faults in; output, files, requests and exit codes
//! out.

#[cfg(test)]
mod suite {
    mod answer;
    mod approvals;
    mod bad_input;
    mod cancel;
    mod commands;
    mod connecting;
    mod context;
    mod crash;
    mod embed;
    mod exec;
    mod faults;
    mod formats;
    mod fragments;
    mod goals;
    mod guard;
    mod hardening;
    mod histories;
    mod imports;
    mod judged;
    mod lab;
    mod limits;
    mod mishaps;
    mod outputs;
    mod paths;
    mod permissions;
    mod places;
    mod pressure;
    mod protected;
    mod reload;
    mod repl;
    mod repl_terminal;
    mod replay;
    mod scenarios;
    mod sessions;
    mod slash;
    mod store_faults;
    mod support;
    mod switching;
    mod terminal;
    mod trust;
    mod tui;
    mod tui_asking;
    mod tui_commands;
    mod tui_hostile;
    mod tui_mishaps;
    mod tui_turns;
    mod tui_writing;
    mod turn;
    mod undo;
}
