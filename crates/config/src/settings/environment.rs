//! The text layers: environment variables and flags.

use super::keys::{self, Place, render};
use super::layers::{Layers, SettingOrigin};
use super::problem::SettingsProblem;
use super::suggest;
use super::{Override, Sources};

/// Variables with Windlass's prefix that are not settings.
const OTHER_VARIABLES: &[&str] = &[
    "WINDLASS_HOME",
    "WINDLASS_SESSION",
    "WINDLASS_CALL",
    "WINDLASS_WARDEN",
    "WINDLASS_LOG",
    "WINDLASS_WEBHOOK_SECRET",
    "WINDLASS_CLUSTER_SECRET",
    "WINDLASS_TOKEN",
    "WINDLASS_BIN",
];

/// Prefix of the simulated provider's variables.
const SIM_PREFIX: &str = "WINDLASS_SIM_";

/// CFG-1: reads one variable per key. An empty variable counts as unset.
pub(super) fn read(sources: &Sources<'_>, layers: &mut Layers) {
    let ours: Vec<&String> = names_of_ours(&sources.env_names).collect();
    if ours.is_empty() {
        return;
    }
    for key in keys::all() {
        let Some(name) = key.env_name().filter(|name| ours.contains(&name)) else {
            continue;
        };
        let Some(text) = (sources.env)(&name).filter(|text| !text.is_empty()) else {
            continue;
        };
        let path: Vec<String> = key.name.split('.').map(str::to_owned).collect();
        match key.kind.parse(&text) {
            Ok(value) => layers.set(key, &path, value, SettingOrigin::Environment(name)),
            Err(message) => {
                let place = format!("environment {name}");
                layers.problem(|| SettingsProblem {
                    place,
                    key: key.name.to_owned(),
                    message,
                });
            }
        }
    }
    warn_unknown(&ours, layers);
}

/// Returns the variables with Windlass's prefix, without those of the simulated provider.
fn names_of_ours(names: &[String]) -> impl Iterator<Item = &String> {
    names
        .iter()
        .filter(|name| name.starts_with("WINDLASS_") && !name.starts_with(SIM_PREFIX))
}

/// Warns about an unknown variable. It is not an error, because it may belong to another version of Windlass.
fn warn_unknown(ours: &[&String], layers: &mut Layers) {
    let other = ours
        .iter()
        .filter(|name| !OTHER_VARIABLES.contains(&name.as_str()));
    let mut known: Option<Vec<String>> = None;
    for name in other {
        let known = known.get_or_insert_with(|| keys::all().filter_map(keys::Key::env_name).collect());
        if known.contains(*name) {
            continue;
        }
        let candidates = known
            .iter()
            .map(String::as_str)
            .chain(OTHER_VARIABLES.iter().copied());
        let hint = match suggest::nearest(name, candidates) {
            Some(near) => format!("; did you mean {near}?"),
            None => String::new(),
        };
        layers.warn(format!("environment {name}: unknown variable, ignored{hint}"));
    }
}

/// CFG-1: reads the flags, the highest layer.
pub(super) fn read_overrides(overrides: &[Override], layers: &mut Layers) {
    for Override {
        key: name,
        value: text,
        flag,
    } in overrides
    {
        let path: Vec<String> = match toml_edit::Key::parse(name) {
            Ok(parts) => parts.iter().map(|part| part.get().to_owned()).collect(),
            // The text is not a valid key, but the nearest key is suggested all the same.
            Err(_) => vec![name.clone()],
        };
        let outcome = match keys::find(&path) {
            Place::Key(key) => key
                .check_names(&path)
                .and_then(|()| Ok((key, key.kind.parse(text)?))),
            Place::Section => Err(format!(
                "a section; set one of its keys: {}",
                suggest::children(&path)
            )),
            Place::Unknown => Err(suggest::unknown(&path, suggest::Found::Value)),
        };
        match outcome {
            Ok((key, value)) => layers.set(key, &path, value, SettingOrigin::Flag(flag.clone())),
            Err(message) => {
                layers.problem(|| SettingsProblem {
                    place: format!("flag {flag}"),
                    key: render(&path),
                    message,
                });
            }
        }
    }
}
