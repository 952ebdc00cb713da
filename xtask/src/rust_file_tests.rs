use super::*;

fn parse(text: &str) -> RustFile {
    RustFile::parse("crates/core/src/turn.rs", text).expect("the fixture is valid Rust")
}

fn lines(file: &RustFile, pattern: &str) -> Vec<(usize, bool)> {
    file.places(pattern)
        .into_iter()
        .map(|place| (place.line, place.in_test))
        .collect()
}

#[test]
fn comments_and_blank_lines_are_not_code() {
    let file = parse("//! Tour.\n\n/// Doc.\nfn a() {\n    // why\n    b(\"x\ny\");\n}\n");
    assert_eq!(file.production_lines(), 4);
    assert_eq!(file.code_lines_between(4, 8), 2);
}

#[test]
fn test_items_are_told_from_production_code() {
    let file = parse(
        "fn a() { x.unwrap() }\n#[cfg(test)]\nmod tests {\n    fn b() { x.unwrap() }\n}\nfn c() { x.unwrap() }\n\
         #[tokio::test(start_paused = true)]\nasync fn d() { x.unwrap() }\n#[cfg(not(test))]\nfn e() { x.unwrap() }\n",
    );
    let expected = [(1, false), (4, true), (6, false), (8, true), (10, false)];
    assert_eq!(lines(&file, ". unwrap ( )"), expected);
}

#[test]
fn a_file_can_be_a_test_as_a_whole() {
    assert!(parse("#![cfg(test)]\nfn a() {}\n").is_test());
    assert!(!parse("fn a() {}\n").is_test());
    for path in [
        "crates/a/src/b_tests.rs",
        "crates/a/tests/run.rs",
        "crates/a/examples/c.rs",
    ] {
        assert!(
            RustFile::parse(path, "fn a() {}").expect("valid").is_test(),
            "{path}"
        );
    }
}

#[test]
fn patterns_are_found_inside_macros_and_not_inside_text() {
    let file = parse(
        "fn a() {\n    select! { _ = b => Instant::now() }\n    c(\"Instant::now\"); // Instant::now\n}\n",
    );
    assert_eq!(lines(&file, "Instant :: now"), [(2, false)]);
}

#[test]
fn grouped_and_renamed_imports_count() {
    let file =
        parse("use tokio::time::{self, sleep};\nuse std::thread::sleep as nap;\nuse tokio::time::timeout;\n");
    assert_eq!(lines(&file, "time :: sleep"), [(1, false)]);
    assert_eq!(lines(&file, "thread :: sleep"), [(2, false)]);
}

#[test]
fn names_after_a_pattern_are_found_in_macros_too() {
    let file = parse(
        "pub struct A;\npub(crate) struct B;\nid! { pub struct C; }\n\
         macro_rules! d { ($name:ident) => { pub struct $name; } }\n#[cfg(test)]\nmod tests { pub struct E; }\n",
    );
    let names: Vec<_> = file
        .names_after("pub struct")
        .into_iter()
        .map(|(name, place)| (name, place.line, place.in_test))
        .collect();
    assert_eq!(names, [("A", 1, false), ("C", 3, false), ("E", 6, true)]);
}

#[test]
fn a_doc_comment_is_a_block_with_a_first_line() {
    let file = parse(
        "//! Tour.\n//! More.\n\n/// One.\n///\n/// More.\nstruct A {\n    ///\n    /// Two.\n    a: u8,\n    /// Three.\n    b: u8,\n}\n\
         /**\n * Four.\n * More.\n */\n#[doc(hidden)]\nfn b() {\n    c! { /// Five.\n }\n}\n",
    );
    let docs: Vec<_> = file
        .docs()
        .iter()
        .map(|doc| (doc.line, doc.first_line.trim()))
        .collect();
    let expected = [
        (1, "Tour."),
        (4, "One."),
        (9, "Two."),
        (11, "Three."),
        (15, "* Four."),
        (20, "Five."),
    ];
    assert_eq!(docs, expected);
}
