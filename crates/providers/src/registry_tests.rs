use super::*;

/// PROV-10: the table is well-formed: names are unique and lowercase, outputs fit their windows.
#[test]
fn the_table_is_well_formed() {
    let rows: Vec<Row> = entries()
        .iter()
        .map(|entry| entry.read().unwrap_or_else(|| panic!("{} is broken", entry.text)))
        .collect();
    assert!(rows.len() >= 40);
    let mut names: Vec<&str> = entries().iter().flat_map(|entry| entry.names.clone()).collect();
    assert!(names.iter().all(|name| *name == name.to_lowercase()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for row in &rows {
        assert!(row.output <= row.window, "{}", row.id);
        assert!(
            row.price
                .is_none_or(|price| price.iter().all(|part| (0.0..1000.0).contains(part))),
            "{}",
            row.id
        );
    }
}

/// PROV-10: a model is found by its name, by an alias, without date, vendor or suffix, and by its family.
#[test]
fn names_are_matched() {
    let cases = [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet"),
        ("Claude-Haiku-4-5", "claude-haiku-4-5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-5.1-codex", "gpt-5.1"),
        ("gpt-5-codex", "gpt-5"),
        ("openai/gpt-oss-120b:free", "gpt-oss-120b"),
        ("gpt-oss:20b", "gpt-oss-120b"),
        ("gemini-3-pro-preview", "gemini-3-pro"),
        ("models/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("accounts/fireworks/models/kimi-k2-instruct", "kimi-k2"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "qwen3-coder"),
        ("llama3.1:8b", "llama-3.1"),
        ("mistral-medium-latest", "mistral-medium"),
        ("sim-1", "sim-1"),
    ];
    for (id, expected) in cases {
        let row = find(id, entries()).unwrap_or_else(|| panic!("{id} is not found"));
        assert_eq!(row.names[0], expected, "{id}");
        assert_eq!(lookup(id, &[]).id, id, "the name sent is the name given");
    }
    for id in ["gpt-5x", "my-model", "", "claude", "/"] {
        assert!(find(id, entries()).is_none(), "{id}");
    }
}

/// PROV-10: unknown models get safe defaults, and the user's overrides win.
#[test]
fn overrides_win() {
    let unknown = lookup("my-model", &[]);
    assert_eq!(
        (unknown.context_window, unknown.max_output, unknown.known),
        (128_000, 8_192, false)
    );
    assert!(unknown.price.is_none());
    let said = ModelOverride {
        id: "my-model".to_owned(),
        context_window: Some(32_000),
        ..ModelOverride::default()
    };
    let model = lookup("my-model", &[said]);
    assert_eq!(
        (model.context_window, model.max_output, model.known),
        (32_000, 8_192, true)
    );
    let price = Price {
        input: 1.0,
        ..Price::default()
    };
    let said = ModelOverride {
        id: "gpt-4o".to_owned(),
        price: Some(price),
        ..ModelOverride::default()
    };
    let model = lookup("gpt-4o", &[said]);
    assert_eq!((model.context_window, model.price), (128_000, Some(price)));
}

/// PROV-10: a wrong name gets similar ones as a hint.
#[test]
fn near_names_are_listed() {
    assert!(similar("claude-sonnet-9").contains(&"claude-sonnet-4-5"));
    assert!(similar("zzz").is_empty());
}
