//! Valid and invalid files, by table: the text and the exact messages.

use super::*;

/// Returns a tool with additional lines, which start on line 6.
fn with(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("tools:\n  - name: probe\n    description: Probes.\n    category: read\n    cmd: probe\n{lines}")
}

fn problems(text: &str) -> Vec<String> {
    match Declarations::parse(text, "t.yaml", Source::User) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

/// Texts and their problems.
type Cases<'a> = &'a [(&'a str, &'a [&'a str])];

fn check(cases: Cases<'_>, text: impl Fn(&str) -> String) {
    for (case, expected) in cases {
        assert_eq!(problems(&text(case)), *expected, "{case}");
    }
}

/// TOOL-5 (S6.7): every mistake in a file is reported with its line, its field and the expected value.
#[test]
fn mistakes_of_the_file_are_named() {
    let cases: Cases<'_> = &[
        ("", &[]),
        ("# nothing yet", &[]),
        ("tools:", &[]),
        ("tools: []", &[]),
        (
            "- x",
            &["t.yaml:1: the file must be a table with tools, not a list"],
        ),
        (
            "tool: []",
            &["t.yaml:1: unknown key `tool`; did you mean `tools`?"],
        ),
        (
            "zzzzzz: []",
            &["t.yaml:1: unknown key `zzzzzz`; valid keys are tools"],
        ),
        (
            "tools: 3",
            &["t.yaml:1: `tools` must be a list of tools, not `3`"],
        ),
        (
            "tools:\n  - [",
            &["t.yaml:2: not valid YAML: unclosed bracket '[' at line 2, column 5"],
        ),
        (
            "tools: []\ntools: []",
            &["t.yaml:2: not valid YAML: duplicate mapping key: tools at line 2, column 1"],
        ),
        (
            "tools:\n  - nam: x\n    description: 5\n    category: reed\n    cmd: ''",
            &[
                "t.yaml:2: unknown key `tools[0].nam`; did you mean `name`?",
                "t.yaml:2: `tools[0].name` is missing; it must be a text",
                "t.yaml:3: `tools[0].description` must be a text (use quotes), not `5`",
                "t.yaml:4: `tools[0].category` must be one of read, write, admin, not `reed`",
                "t.yaml:5: `tools[0].cmd` must be a text that is not empty, not ``",
            ],
        ),
        (
            "tools:\n  - {name: Bad-Name, description: x, category: read, cmd: x}",
            &[
                "t.yaml:2: `tools[0].name` must be lowercase letters, digits and _, starting with a letter, at most 64, not `Bad-Name`",
            ],
        ),
        (
            "tools:\n  - {name: a, description: x, category: read, cmd: x}\n  - {name: a, description: x, category: read, cmd: x}",
            &["t.yaml:3: `a.name` is taken by the tool on line 2; choose another"],
        ),
    ];
    check(cases, str::to_owned);
}

/// TOOL-5 (S6.7): the names of all built-in tools are reserved, even of those not currently offered.
#[test]
fn built_in_names_are_taken() {
    for name in ["bash", "read_file", "done", "fetch", "apply_patch"] {
        let text = with("").replace("name: probe", &format!("name: {name}"));
        let expected = format!("t.yaml:2: `{name}.name` is the name of a built-in tool; choose another");
        assert_eq!(problems(&text), [expected]);
    }
}

/// TOOL-5 (S6.7): mistakes in arguments, groups, variables and limits are reported.
#[test]
fn mistakes_of_a_tool_are_named() {
    let cases: Cases<'_> = &[
        (
            "parametrs: {}",
            &["t.yaml:6: unknown key `probe.parametrs`; did you mean `parameters`?"],
        ),
        (
            "args: x",
            &["t.yaml:6: `probe.args` must be a list of arguments, not `x`"],
        ),
        (
            "args: [a,\n5]",
            &["t.yaml:7: `probe.args[1]` must be a text (use quotes), not `5`"],
        ),
        (
            "args: ['{{a']",
            &["t.yaml:6: `probe.args[0]` has `{{` without `}}`; write `{{{{` for literal braces"],
        ),
        (
            "args: ['{{a}}']",
            &["t.yaml:6: `probe.args[0]` uses `{{a}}`, which is not a parameter; add it to `parameters`"],
        ),
        (
            "args: ['{{cuont}}']\nparameters:\n  count: { type: integer }",
            &[
                "t.yaml:6: `probe.args[0]` uses `{{cuont}}`, which is not a parameter; did you mean `count`?",
                "t.yaml:8: `probe.parameters.count` is not used; use `{{count}}` in an argument, or remove it",
            ],
        ),
        (
            "args: ['{{a}}']\nparameters:\n  a: { type: string, optional: true }",
            &[
                "t.yaml:6: `probe.args[0]` uses `a`, which is optional; move it to `optional_args`: { when: a, args: […] }",
            ],
        ),
        (
            "optional_args:\n  - { args: [x] }",
            &[
                "t.yaml:7: `probe.optional_args[0].when` is missing; it must name the parameter that adds the group",
            ],
        ),
        (
            "optional_args:\n  - { when: b }",
            &[
                "t.yaml:7: `probe.optional_args[0].when` names `b`, which is not a parameter; add it to `parameters`",
                "t.yaml:7: `probe.optional_args[0].args` is missing; it must be a list of arguments",
            ],
        ),
        (
            "env: { PATH: x, 'a b': y, WINDLASS_X: z, A: 5, B: 'x${Y}', C: '${bad name}', AGENT: me }",
            &[
                "t.yaml:6: `probe.env.PATH` cannot be set; give the full path of the program in `cmd`",
                "t.yaml:6: `probe.env.a b` must be a name of letters, digits and _, not starting with a digit",
                "t.yaml:6: `probe.env.WINDLASS_X` cannot be set; Windlass sets the variables that start with WINDLASS_",
                "t.yaml:6: `probe.env.A` must be a text (use quotes), not `5`",
                "t.yaml:6: `probe.env.B` must be a plain text, or `${NAME}` and nothing else, not `x${Y}`",
                "t.yaml:6: `probe.env.C` must be a plain text, or `${NAME}` and nothing else, not `${bad name}`",
                "t.yaml:6: `probe.env.AGENT` cannot be set; Windlass sets it",
            ],
        ),
        (
            "timeout: 0",
            &["t.yaml:6: `probe.timeout` must be seconds from 1 to 1800, not `0`"],
        ),
        (
            "timeout: 1h",
            &["t.yaml:6: `probe.timeout` must be a whole number, not `1h`"],
        ),
    ];
    check(cases, with);
}

/// TOOL-5 (S6.7): mistakes in parameters are reported. A wrong parameter is not reported again where it is
/// used.
#[test]
fn mistakes_of_a_parameter_are_named() {
    let text_keys = "type, description, optional, enum, pattern, max_length, maxLength, allow_leading_dash";
    let unknown_min = format!("t.yaml:8: unknown key `probe.parameters.a.min`; valid keys are {text_keys}");
    let too_large = "Compiled regex exceeds size limit of 1048576 bytes.";
    let too_large =
        format!("t.yaml:8: `probe.parameters.a.pattern` must be a regular expression: {too_large}");
    let cases: Cases<'_> = &[
        ("{ type: string }", &[]),
        (
            "{ type: text }",
            &[
                "t.yaml:8: `probe.parameters.a.type` must be one of string, integer, number, boolean, not `text`",
            ],
        ),
        (
            "{}",
            &[
                "t.yaml:8: `probe.parameters.a.type` is missing; it must be one of string, integer, number, boolean",
            ],
        ),
        ("{ type: string, min: 1 }", &[&unknown_min]),
        (
            "{ type: integer, min: 5, max: 1 }",
            &["t.yaml:8: `probe.parameters.a.max` must be at least `min`, not `1`"],
        ),
        (
            "{ type: integer, min: x, optional: y }",
            &[
                "t.yaml:8: `probe.parameters.a.optional` must be true or false, not `y`",
                "t.yaml:8: `probe.parameters.a.min` must be a whole number, not `x`",
            ],
        ),
        (
            "{ type: string, pattern: '(', max_length: 0, enum: [] }",
            &[
                "t.yaml:8: `probe.parameters.a.enum` must be a list of at least one text, not a list",
                "t.yaml:8: `probe.parameters.a.pattern` must be a regular expression: unclosed group",
                "t.yaml:8: `probe.parameters.a.max_length` must be a number above 0, not `0`",
            ],
        ),
        (
            "{ type: string, pattern: 'a)|(b' }",
            &["t.yaml:8: `probe.parameters.a.pattern` must be a regular expression: unopened group"],
        ),
        (r"{ type: string, pattern: '(?:\w{999}){999}' }", &[&too_large]),
        (
            "{ type: string, enum: [1] }",
            &["t.yaml:8: `probe.parameters.a.enum[0]` must be a text (use quotes), not `1`"],
        ),
    ];
    check(cases, |parameter| {
        with(&format!("args: ['{{{{a}}}}']\nparameters:\n  a: {parameter}"))
    });
    let name = with("parameters:\n  9a: { type: string }\nargs: ['{{9a}}']");
    let expected =
        "t.yaml:7: `probe.parameters.9a` must be a name of letters, digits and _, not starting with a digit";
    assert_eq!(problems(&name), [expected]);
}

/// TOOL-6 (S6.8): `cmd` is a program and never a shell line.
#[test]
fn a_program_is_no_shell_line() {
    let shell_line = "must be one program, not a shell line; its arguments belong in `args`";
    let relative = "must be the name of a program on PATH, or an absolute path";
    let cases = [
        ("git", None),
        ("/opt/my tools/git", None),
        ("git log", Some(shell_line)),
        ("git|cat", Some(shell_line)),
        ("$SHELL", Some(shell_line)),
        ("./tool", Some(relative)),
        ("bin/tool", Some(relative)),
        ("~/tool", Some(relative)),
        (
            "'{{a}}'",
            Some("must be a fixed program; templates belong in `args`"),
        ),
    ];
    for (cmd, expected) in cases {
        let text = with("").replace("cmd: probe", &format!("cmd: {cmd}"));
        let expected: Vec<String> = expected
            .iter()
            .map(|why| format!("t.yaml:5: `probe.cmd` {why}"))
            .collect();
        assert_eq!(problems(&text), expected, "{cmd}");
    }
}

/// TOOL-6 (S6.9): a template that would turn a value into code or an option name is refused when the file is
/// read.
#[test]
fn values_are_neither_code_nor_options() {
    let code = "is code that would run with values in it; pass them as arguments after the code";
    let option = "lets `a` choose an option; give `a` an `enum`, or write the option out";
    let cases = [
        ("sh", "[-c, 'echo {{a}}']", Some(("args[1]", code))),
        ("/bin/bash", "[-lc, '{{a}}']", Some(("args[1]", code))),
        (
            "env",
            "[A=b, python3.11, -c, 'print({{a}})']",
            Some(("args[3]", code)),
        ),
        ("perl", "[-we, '{{a}}']", Some(("args[1]", code))),
        ("sh", "[-c, 'echo \"$1\"', sh, '{{a}}']", None),
        ("git", "[-c, '{{a}}']", None),
        ("ls", "['-{{a}}']", Some(("args[0]", option))),
        ("ls", "['--no-{{a}}=x']", Some(("args[0]", option))),
        ("ls", "['--sort={{a}}']", None),
        ("ls", "['-I{{a}}']", None),
    ];
    for (cmd, args, expected) in cases {
        let text = with(&format!("args: {args}\nparameters:\n  a: {{ type: string }}"));
        let text = text.replace("cmd: probe", &format!("cmd: {cmd}"));
        let expected: Vec<String> = expected
            .iter()
            .map(|(place, why)| format!("t.yaml:6: `probe.{place}` {why}"))
            .collect();
        assert_eq!(problems(&text), expected, "{cmd} {args}");
    }
    let chosen = with("args: ['--{{a}}']\nparameters:\n  a: { type: string, enum: [all, long] }");
    assert_eq!(problems(&chosen), [""; 0]);
    // A part after a selected part also selects, unless the first part is the whole name.
    for (argument, choices, refused) in [
        ("-{{e}}{{a}}", "[n, m]", false),
        ("-{{e}}{{a}}", "[n, '']", true),
        ("--{{e}}{{a}}", "[all, long]", true),
        ("--{{e}}-{{a}}", "[all, long]", true),
        ("--{{e}}={{a}}", "[all, long]", false),
    ] {
        let parameters = format!("  a: {{ type: string }}\n  e: {{ type: string, enum: {choices} }}");
        let text = with(&format!("args: ['{argument}']\nparameters:\n{parameters}"));
        let expected = refused.then(|| format!("t.yaml:6: `probe.args[0]` {option}"));
        assert_eq!(problems(&text), Vec::from_iter(expected), "{argument} {choices}");
    }
}

/// TOOL-5 (S6.7): the example of the original description is accepted, with its spelling.
#[test]
fn the_original_format_is_understood() {
    let text = r#"
tools:
  - name: kubectl_get
    description: "Get Kubernetes resources"
    category: read
    cmd: kubectl
    args: ["get", "{{resource}}"]
    optional_args:
      namespace: ["-n", "{{namespace}}"]
    parameters:
      resource:
        type: string
        enum: [pods, services]
        description: "The resource type"
      namespace:
        type: string
        pattern: "^[a-z0-9-]+$"
        maxLength: 63
        optional: true
"#;
    let declarations = Declarations::parse(text, "t.yaml", Source::User).expect("valid");
    let tools = declarations.tools(&ToolsConfig::default(), &|_| None);
    let spec = tools.first().expect("a tool").spec().clone();
    let expected = r#"{"type":"object","properties":{"resource":{"type":"string","description":"The resource type","enum":["pods","services"]},"namespace":{"type":"string","pattern":"^[a-z0-9-]+$","maxLength":63}},"required":["resource"],"additionalProperties":false}"#;
    assert_eq!(spec.schema.to_string(), expected);
    assert_eq!(spec.description, "Get Kubernetes resources");
}

/// SAFE-6: the fingerprint is stable, changes with every definition, and ignores layout.
#[test]
fn the_fingerprint_stands_for_the_definitions() {
    let read = |text: &str, source| Declarations::parse(text, "t.yaml", source).expect("valid");
    let lines =
        "args: [x, '{{a}}']\nparameters:\n  a: { type: integer, min: 1 }\nenv: { A: '${B}' }\ntimeout: 5";
    let text = with(lines);
    let first = read(&text, Source::User).fingerprint();
    assert_eq!(
        first.as_str(),
        "a507d23935d1768839bf379f089da3fdcbf1c77edd657ae16379ab9e871d7351",
        "it must stay the same from version to version, or every grant is lost"
    );
    let same = format!("# a comment\n\n{}", text.replace("[x,", "[ \"x\" ,"));
    assert_eq!(read(&same, Source::User).fingerprint(), first);
    let changes = [
        ("[x,", "[y,"),
        ("[x, ", "[x, z, "),
        ("min: 1", "min: 2"),
        ("${B}", "${C}"),
        ("${B}", "B"),
        ("timeout: 5", "timeout: 6"),
        ("category: read", "category: write"),
        ("cmd: probe", "cmd: prove"),
        ("Probes.", "Probes"),
        ("name: probe", "name: probes"),
    ];
    for (from, to) in changes {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_ne!(read(&changed, Source::User).fingerprint(), first, "{from} → {to}");
    }
    assert_ne!(read(&text, Source::Project).fingerprint(), first);
    let declarations = read(&text, Source::User);
    assert!(declarations.fingerprint_of("probe").is_some());
    assert_eq!(declarations.fingerprint_of("prob"), None);
    assert!(declarations.only(Source::Project).names().is_empty());
}
