//! Assembles the terminal UI: its appearance, and the services of this machine.

use std::io::IsTerminal;
use std::sync::Arc;

use windlass_core::clock::SystemClock;
use windlass_tui::{KeyBindings, Looks, Notifications, Palette, Start, Surface, Theme, Why};

use crate::desktop::Machine;
use crate::exit::Exit;
use crate::interactive::Scene;
use crate::repl::Spoken;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};

/// Terminals that do not reflow lines when their width changes.
const RIGID: &[&str] = &["linux", "vt100", "vt102", "vt220", "ansi", "xterm-mono"];

/// Returns true if there is a terminal to draw on.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Runs the terminal UI until the user quits.
pub(crate) async fn run(scene: &Scene<'_>, full_screen: bool) -> Result<Spoken, Problem> {
    let folders = environment::folders()?;
    let machine = Machine::new(&folders.data, Arc::clone(scene.preferences));
    let machine = if scene.keeps {
        machine
    } else {
        machine.without_memory()
    };
    let look = look(scene.settings, &machine, full_screen).await?;
    let history = machine.history();
    let mut notices = scene.settings.warnings.clone();
    notices.extend_from_slice(scene.notices.first);
    let start = Start {
        backend: Arc::clone(scene.backend),
        connections: Arc::clone(scene.connections),
        desktop: Arc::new(machine),
        clock: Arc::new(SystemClock::default()),
        session: scene.session.clone(),
        notices,
        news: scene.notices.later.subscribe(),
        history,
        look,
    };
    let ended = windlass_tui::run(start).await;
    let ended = ended.map_err(|error| Problem::usage(format!("{error}; try --plain")))?;
    let last = scene.backend.tail(&ended.session, None, 1).await;
    Ok(Spoken {
        exit: match ended.why {
            Why::Left => Exit::Ok,
            Why::Signal => Exit::Interrupted,
            Why::Gone => Exit::BrokenPipe,
        },
        has_talked: last.is_ok_and(|entries| !entries.is_empty()),
        session: ended.session,
    })
}

/// Returns the appearance: from the settings, otherwise the last choices.
async fn look(settings: &Settings, machine: &Machine, full_screen: bool) -> Result<Looks, Problem> {
    let screen = &settings.agent.screen;
    let changes = screen
        .keys
        .iter()
        .map(|(action, key)| (action.as_str(), key.as_str()));
    let keys = KeyBindings::with(changes)
        .map_err(|error| Problem::new(ProblemKind::Config, format!("`tui.keys`: {error}")))?;
    let theme = match &screen.theme {
        Some(name) => Some(name.clone()),
        None => machine.chosen("theme").await,
    };
    let vim = match screen.vim {
        Some(vim) => vim,
        None => machine.chosen("vim").await.as_deref() == Some("on"),
    };
    let term = environment::var("TERM").unwrap_or_default();
    let has_color = environment::var("NO_COLOR").is_none() && !term.ends_with("-m");
    let palette = theme.as_deref().and_then(Palette::named).unwrap_or_default();
    Ok(Looks {
        theme: Theme {
            palette: if has_color { palette } else { Palette::None },
            ascii: !is_utf8(),
        },
        full_screen: full_screen || screen.full_screen,
        vim,
        keys,
        reflows: reflows(&term),
        surface: Surface {
            home: environment::var("HOME"),
            titles: screen.title.unwrap_or(true),
            mouse: screen.mouse.unwrap_or(true),
            notifications: notifications(screen.notify.as_deref().unwrap_or("auto"), &term),
            no_color: !has_color,
        },
    })
}

/// Returns the way to notify the user. Terminals ignore an unknown sequence, but the wrong one reaches nobody.
fn notifications(chosen: &str, term: &str) -> Notifications {
    let program = environment::var("TERM_PROGRAM").unwrap_or_default();
    match chosen {
        "off" => Notifications::Off,
        "bell" => Notifications::Bell,
        "osc9" => Notifications::Osc9,
        "osc777" => Notifications::Osc777,
        // A multiplexer keeps such sequences to itself.
        _ if environment::var("TMUX").is_some() || term.starts_with("screen") => Notifications::Bell,
        _ if term.starts_with("rxvt") || term.starts_with("foot") => Notifications::Osc777,
        _ if ["iTerm.app", "WezTerm", "ghostty"].contains(&program.as_str()) || term == "xterm-kitty" => {
            Notifications::Osc9
        }
        _ => Notifications::Bell,
    }
}

/// Returns true if the terminal reflows lines when its width changes, as nearly all do.
fn reflows(term: &str) -> bool {
    let is_screen = term.starts_with("screen") && environment::var("TMUX").is_none();
    // Other terminals use xterm's `TERM` value as well, so it does not identify xterm.
    let is_xterm = environment::var("XTERM_VERSION").is_some();
    !(RIGID.contains(&term) || is_screen || is_xterm)
}

/// Returns true if the terminal uses UTF-8, which is assumed if no locale is set.
fn is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(environment::var);
    let Some(locale) = named else {
        return true;
    };
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
