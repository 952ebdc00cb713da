use ratatui::style::Color;

use super::*;

fn gauge(used: u64, window: u64) -> Option<(String, Option<Color>)> {
    let status = Status {
        used,
        window,
        ..Status::default()
    };
    let span = status.context_gauge(Theme::default())?;
    Some((span.content.to_string(), span.style.fg))
}

/// UI-2: the gauge is green below 70 %, yellow to 90 %, red above, and hidden if the window is unknown.
#[test]
fn the_gauge_tells_how_full_the_context_is() {
    let cases = [
        (0, "▱▱▱▱▱▱ 0%", Color::Green),
        (69_999, "▰▰▰▰▰▱ 69%", Color::Green),
        (70_000, "▰▰▰▰▰▱ 70%", Color::Yellow),
        (90_000, "▰▰▰▰▰▰ 90%", Color::Yellow),
        (90_001, "▰▰▰▰▰▰ 90%", Color::Red),
        (150_000, "▰▰▰▰▰▰ 150%", Color::Red),
    ];
    for (used, text, color) in cases {
        assert_eq!(gauge(used, 100_000), Some((text.to_owned(), Some(color))));
    }
    assert_eq!(gauge(5, 0), None);
}

/// UI-2: the badge is hidden until the first compaction, and then shows the savings and the duration.
#[test]
fn the_badge_tells_what_a_compaction_saved() {
    let mut status = Status::default();
    assert_eq!(status.compaction_badge(Theme::default()), None);
    status.hear(&Event::Status { text: String::new() }, 1_000);
    let compaction = SessionEvent::Compaction {
        before: 48_200,
        after: 11_900,
        history: Vec::new(),
        fidelity: None,
    };
    status.hear(&Event::Session(compaction), 2_300);
    assert_eq!(
        status.compaction_badge(Theme::default()).as_deref(),
        Some("48k→12k (-36k) 1.3s")
    );
}

/// GOAL-1, UI-2: a goal that a command set appears with its event, and disappears when it is reached or cleared.
#[test]
fn the_goal_is_heard() {
    let mut status = Status::default();
    let goal = |text: Option<&str>| SessionEvent::Goal {
        text: text.map(str::to_owned),
        explicit: true,
    };
    let message = SessionEvent::Goal {
        text: Some("first message".to_owned()),
        explicit: false,
    };
    let reached = || SessionEvent::GoalCompleted {
        text: "a\nb".to_owned(),
        how: windlass_api::GoalCompletion::Phrase,
    };
    for (event, expected) in [
        (goal(Some("a\nb")), Some("a b")),
        (reached(), None),
        (goal(Some("c")), Some("c")),
        (goal(None), None),
        (message, None),
    ] {
        status.hear(&Event::Session(event), 0);
        assert_eq!(status.goal.as_deref(), expected);
    }
}

/// UI-2: a narrow terminal drops the least important parts first; nothing is wider than the terminal.
#[test]
fn the_line_fits() {
    let status = Status {
        provider: "anthropic".to_owned(),
        model: "claude".to_owned(),
        mode: "plan".to_owned(),
        window: 100,
        used: 50,
        cost: Cost {
            usd: 0.5,
            is_unpriced: false,
        },
        queued: 2,
        goal: Some("ship it".to_owned()),
        ..Status::default()
    };
    let text = |columns| status.line(columns, Theme::default(), None).to_string();
    assert_eq!(
        text(100),
        "  anthropic/claude · plan · ▰▰▰▱▱▱ 50% · $0.5000 · 2 queued · goal: ship it"
    );
    assert_eq!(text(50), "  claude · plan · ▰▰▰▱▱▱ 50% · $0.5000 · 2 queued");
    let long = Status {
        model: "claude-sonnet-4-5".to_owned(),
        queued: 0,
        place: Place {
            folder: "~/project".to_owned(),
            branch: Some("main".to_owned()),
            effort: "high".to_owned(),
            instructions: Vec::new(),
        },
        ..status.clone()
    };
    let text_of = |columns| long.line(columns, Theme::default(), None).to_string();
    let unknown = Status {
        cost: Cost {
            usd: 0.0,
            is_unpriced: true,
        },
        ..long.clone()
    };
    let shown = unknown.line(51, Theme::default(), None).to_string();
    assert!(
        shown.ends_with("50% · ?"),
        "a price that is not known is no number: {shown}"
    );
    assert_eq!(text_of(51), "  claude-sonnet-4-5 · plan · ▰▰▰▱▱▱ 50% · $0.5000");
    assert_eq!(text_of(46), "  clau…onnet-4-5 · plan · ▰▰▰▱▱▱ 50% · $0.5000");
    assert_eq!(text_of(45), "  clau…nnet-4-5 · plan · ▰▰▰▱▱▱ 50% · $0.5000");
    assert_eq!(text_of(40), "  cl…t-4-5 · plan · ▰▰▰▱▱▱ 50% · $0.5000");
    assert!(text_of(120).contains("anthropic/claude-sonnet-4-5 high · plan"));
    assert!(text_of(120).contains("~/project (main)"));
    for columns in 1..100 {
        assert!(width(&text(columns)) <= columns, "{columns}");
    }
}
