//! The files for operating servers: what they name exists.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{HttpServer, PATIENCE, eventually};

use super::support::{repository_file, with_replies};

/// Prefixes of our metrics.
const OURS: [&str; 2] = ["windlass_", "gen_ai_"];

/// Returns the names in an expression that are followed by a selector, without the suffix of a histogram.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let mut names = BTreeSet::new();
    let pieces: Vec<&str> = expression.split('{').collect();
    for before in &pieces[..pieces.len() - 1] {
        let name = before.rsplit(|sign| !is_name(sign)).next().unwrap_or_default();
        let suffixes = ["_bucket", "_count", "_sum"];
        let plain = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        names.insert(plain.unwrap_or(name).to_owned());
    }
    names
}

/// Returns the names of labels in an expression.
fn labels_in(expression: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for part in expression.split("by (").skip(1) {
        let list = part.split(')').next().unwrap_or_default();
        labels.extend(list.split(',').map(|label| label.trim().to_owned()));
    }
    labels
}

/// OBS-1, SRV-6: every metric and label of the dashboard is one that a server has after a turn.
#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let replies = [
        Reply::call("list_directory", json!({ "path": "." })),
        // The time to the first piece exists only for a reply that takes longer than that.
        Reply::text(&"done ".repeat(2_000)).fault(Fault::new().chunk(4)),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let server = HttpServer::start(workspace.run(&["serve", "--listen", "127.0.0.1:0"]));
    let session = server.session();
    server.say(&session, "go");
    server.wait_idle(&session);
    let page = || server.request("GET", "/metrics", "").body;
    assert!(eventually(PATIENCE, || page().contains("gen_ai_invoke_agent")));
    let page = page();
    let dashboard: Value = serde_json::from_str(&repository_file("docs/ops/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let expressions: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(expressions.len() > 15, "{expressions:?}");
    for expression in expressions {
        let metrics = metrics_in(expression);
        assert!(!metrics.is_empty(), "{expression}");
        for metric in metrics {
            assert!(OURS.iter().any(|prefix| metric.starts_with(prefix)), "{metric}");
            assert!(
                page.contains(&format!("# TYPE {metric} ")),
                "no metric {metric}:\n{page}"
            );
        }
        for label in labels_in(expression) {
            // The first is added by Prometheus, the second exists only after a failure.
            let is_known = ["instance", "error_type"].contains(&label.as_str());
            assert!(
                is_known || page.contains(&format!("{label}=\"")),
                "no label {label}:\n{page}"
            );
        }
    }
}

/// The names of settings and options in the unit and the compose file are understood by this version.
#[test]
fn services_start_with_options_that_exist() {
    let unit = repository_file("docs/ops/windlass.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let start = start.expect("a command");
    let compose = repository_file("docs/ops/compose.yaml");
    let help = with_replies(Protocol::Anthropic, [])
        .1
        .run(&["serve", "--help"])
        .output();
    let words = |text: &str| -> Vec<String> {
        text.split(|sign: char| sign.is_whitespace() || "[],\"".contains(sign))
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect()
    };
    let serve = compose
        .lines()
        .filter(|line| line.contains("\"serve\""))
        .map(str::to_owned)
        .collect::<String>();
    let options: Vec<String> = words(start).into_iter().chain(words(&serve)).collect();
    assert!(options.len() >= 4, "{options:?}");
    for option in options {
        assert!(help.stdout.contains(&option), "{option}\n{help}");
    }
}
