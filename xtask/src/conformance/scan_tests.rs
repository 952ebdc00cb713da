use super::*;

const REGISTER: &str = "[[area]]\nname = \"LOOP\"\ntitle = \"loop\"\nrequirements = [\n\
                        { id = \"LOOP-4\", state = \"done\", title = \"t\", aliases = [\"S5.3\"] },\n\
                        { id = \"LOOP-5\", state = \"done\", title = \"t\" },\n]\n";

/// Tests found in a file, as `line name ids`.
fn found(path: &str, text: &str) -> Vec<String> {
    let register = Register::parse(REGISTER).expect("the fixture is a register");
    let file = TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    super::tests(&file, &register)
        .iter()
        .map(|test| format!("{} {} {}", test.line, test.name, test.ids.join(" ")))
        .collect()
}

fn rust(text: &str) -> Vec<String> {
    found("crates/core/src/turn_tests.rs", text)
}

fn python(text: &str) -> Vec<String> {
    found("tests/sdk/test_calls.py", text)
}

#[test]
fn a_doc_comment_names_ids_at_the_start_of_a_line() {
    assert_eq!(rust("/// LOOP-4\n#[test]\nfn order() {}\n"), ["3 order LOOP-4"]);
    assert_eq!(
        rust("/// LOOP-4, LOOP-5: in order.\n#[test]\nfn order() {}\n"),
        ["3 order LOOP-4 LOOP-5"]
    );
    assert_eq!(
        rust("/// In order.\n///\n/// LOOP-5.\n#[test]\nfn order() {}\n"),
        ["5 order LOOP-5"]
    );
    assert_eq!(
        rust("/// LOOP-4 (S5.3): in order.\n#[test]\nfn order() {}\n"),
        ["3 order LOOP-4"]
    );
    assert_eq!(rust("/// S5.3\n#[test]\nfn order() {}\n"), ["3 order LOOP-4"]);
    assert_eq!(rust("/// Not as in LOOP-4.\n#[test]\nfn order() {}\n"), [""; 0]);
    assert_eq!(rust("/// UTF-8 stays.\n#[test]\nfn order() {}\n"), [""; 0]);
}

#[test]
fn tests_come_in_several_forms() {
    let wide = "/// LOOP-4\n#[tokio::test(\n    start_paused = true,\n)]\nasync fn order() {}\n";
    assert_eq!(rust(wide), ["5 order LOOP-4"]);
    let property = "proptest! {\n    #![proptest_config(few())]\n\n    /// LOOP-5\n    #[test]\n    fn any(a in 0..9) {\n";
    assert_eq!(rust(property), ["6 any LOOP-5"]);
    assert_eq!(
        rust("#[test]\n#[cfg(unix)]\n/// LOOP-4\nfn order() {}\n"),
        ["4 order LOOP-4"]
    );
}

#[test]
fn what_is_not_a_test_shows_nothing() {
    assert_eq!(
        rust("/// LOOP-4\nfn order() {}\n\n#[test]\nfn other() {}\n"),
        [""; 0]
    );
    assert_eq!(rust("/// LOOP-4\nstruct A;\n#[test]\nfn other() {}\n"), [""; 0]);
    assert_eq!(
        found("xtask/src/scan.rs", "/// LOOP-4\n#[test]\nfn order() {}\n"),
        [""; 0]
    );
}

#[test]
fn python_tests_name_ids_in_a_docstring_or_above() {
    assert_eq!(
        python("def test_order(client):\n    \"\"\"LOOP-4\"\"\"\n"),
        ["1 test_order LOOP-4"]
    );
    let long = "async def test_order(\n    client,\n):\n    \"\"\"Calls go back in order.\n\n    LOOP-4, LOOP-5\n    \"\"\"\n";
    assert_eq!(python(long), ["1 test_order LOOP-4 LOOP-5"]);
    assert_eq!(
        python("# LOOP-5\n@pytest.mark.asyncio\ndef test_any():\n    pass\n"),
        ["3 test_any LOOP-5"]
    );
    assert_eq!(python("# LOOP-5\nx = 1\ndef test_any():\n    pass\n"), [""; 0]);
    assert_eq!(python("def helper():\n    \"\"\"LOOP-4\"\"\"\n"), [""; 0]);
    assert_eq!(
        found("web/test_calls.py", "def test_a():\n    \"\"\"LOOP-4\"\"\"\n"),
        [""; 0]
    );
}
