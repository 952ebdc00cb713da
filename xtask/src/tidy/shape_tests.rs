use super::*;

/// Findings in a file with this text, as `rule item size`.
fn findings(text: &str) -> Vec<String> {
    let tree = Tree::of(&[("crates/core/src/turn.rs", text)]);
    let line = |finding: &Finding| {
        format!(
            "{} {} {}",
            finding.rule,
            finding.item,
            finding.size.unwrap_or_default()
        )
    };
    check(&tree).iter().map(line).collect()
}

fn function(name: &str, lines: usize) -> String {
    format!(
        "fn {name}() {{\n{}}}\n",
        "    // why\n\n    step();\n".repeat(lines)
    )
}

fn list(count: usize, entry: impl Fn(usize) -> String) -> String {
    (0..count).map(entry).collect()
}

#[test]
fn a_file_has_at_most_600_lines_of_code() {
    let constants = |count| list(count, |n| format!("/// Doc.\nconst C{n}: u8 = 0;\n"));
    assert_eq!(findings(&constants(600)), [""; 0]);
    assert_eq!(findings(&constants(601)), ["file-length  601"]);
    let tested = format!(
        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        constants(590),
        constants(90)
    );
    assert_eq!(findings(&tested), [""; 0], "tests are not counted");
}

#[test]
fn long_files_are_noted_before_they_are_too_long() {
    let noted = |lines| {
        let text = list(lines, |n| format!("const C{n}: u8 = 0;\n"));
        long_files(&Tree::of(&[("crates/core/src/turn.rs", &text)]))
    };
    assert_eq!(noted(400), [""; 0]);
    assert_eq!(noted(401), ["crates/core/src/turn.rs: long: 401 lines of code"]);
    assert_eq!(noted(601), [""; 0], "that is a finding, not a note");
}

#[test]
fn a_function_has_at_most_80_lines_of_code() {
    assert_eq!(findings(&function("step", 80)), [""; 0]);
    assert_eq!(findings(&function("step", 81)), ["function-length step 81"]);
    let method = format!("impl<T> Turn<T> {{ {} }}", function("advance", 90));
    assert_eq!(findings(&method), ["function-length Turn::advance 90"]);
    let default = format!("trait Port {{ {} }}", function("close", 90));
    assert_eq!(findings(&default), ["function-length Port::close 90"]);
    assert_eq!(findings(&format!("#[test] {}", function("long", 90))), [""; 0]);
}

#[test]
fn nesting_is_at_most_5() {
    let ifs = |depth: usize| format!("fn deep() {{ {} {} }}", "if a {".repeat(depth), "}".repeat(depth));
    assert_eq!(findings(&ifs(5)), [""; 0]);
    assert_eq!(findings(&ifs(6)), ["nesting deep 6"]);
}

#[test]
fn a_struct_has_at_most_12_fields() {
    let fields = |count| format!("struct Session {{ {} }}", list(count, |n| format!("f{n}: u8,")));
    assert_eq!(findings(&fields(12)), [""; 0]);
    assert_eq!(findings(&fields(13)), ["struct-fields Session 13"]);
}

#[test]
fn a_trait_has_at_most_6_methods() {
    let methods = |count| {
        format!(
            "trait Store {{ type Row; {} }}",
            list(count, |n| format!("fn m{n}() {{}}"))
        )
    };
    assert_eq!(findings(&methods(6)), [""; 0]);
    assert_eq!(findings(&methods(7)), ["trait-methods Store 7"]);
}

#[test]
fn an_event_has_at_most_20_variants() {
    let variants = |name, count| format!("enum {name} {{ {} }}", list(count, |n| format!("V{n},")));
    assert_eq!(findings(&variants("TurnEvent", 20)), [""; 0]);
    assert_eq!(
        findings(&variants("TurnEvent", 21)),
        ["event-variants TurnEvent 21"]
    );
    assert_eq!(
        findings(&variants("Command", 40)),
        [""; 0],
        "a flat list of something else is fine"
    );
}

#[test]
fn long_inline_tests_move_out() {
    let tests = |lines| {
        format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "use super::*;\n".repeat(lines)
        )
    };
    assert_eq!(findings(&tests(100)), [""; 0]);
    assert_eq!(findings(&tests(101)), ["inline-tests tests 101"]);
    let sibling = Tree::of(&[("crates/core/src/turn_tests.rs", &function("long", 200))]);
    assert_eq!(check(&sibling), []);
}
