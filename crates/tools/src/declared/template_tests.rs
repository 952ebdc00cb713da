//! Filling templates, by table: the resulting arguments, and the values that are refused.

use proptest::prelude::*;

use super::super::{Declarations, Source};
use super::*;

/// Parameters and their values.
type Given<'a> = &'a [(&'a str, &'a str)];

/// Returns the arguments that a tool with these lines builds from these values.
fn filled(lines: &str, values: Given<'_>) -> Result<Vec<String>, Vec<String>> {
    let head = "tools:\n  - name: probe\n    description: x\n    category: read\n    cmd: probe";
    let lines: String = lines
        .lines()
        .map(|line| format!("\n    {}", line.trim()))
        .collect();
    let parameters = "{ x: { type: string, optional: true }, y: { type: string, optional: true }, \
         d: { type: string, optional: true, allow_leading_dash: true }, \
         e: { type: string, optional: true, enum: ['-e', e] }, \
         f: { type: boolean, optional: true }, i: { type: integer, optional: true }, r: { type: string }, \
         s: { type: string } }";
    let all = "{ args: ['{{x}}', '{{y}}', '{{d}}', '{{e}}', '{{f}}', '{{i}}', '{{r}}', '{{s}}', never] }";
    let lines = lines.replace("optional_args: [", &format!("optional_args: [ {all}, "));
    let text = format!("{head}{lines}\n    parameters: {parameters}\n");
    let declarations = Declarations::parse(&text, "t.yaml", Source::User).expect("valid");
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    fill(
        declarations.definitions.first().expect("a tool"),
        &values.collect(),
    )
}

/// TOOL-6 (S6.8): metacharacters stay literal, and a value stays inside its argument.
#[test]
fn values_stay_inside_their_argument() {
    let values = [
        "plain",
        "",
        " ",
        "two words",
        "; rm -rf /",
        "$(touch x)",
        "`touch x`",
        "a\nb",
        "a\r\n",
        "*.rs",
        "~",
        "$HOME",
        "'\"\\",
        "a|b && c > d",
        "{{s}}",
        "{{{{",
        "ä€🦀\u{202e}",
    ];
    for value in values {
        let lines = "args: [run, '{{r}}', 'a{{r}}b{{ s }}c', '--o={{r}}', --, '{{s}}']\noptional_args: []";
        let expected = [
            "run",
            value,
            &format!("a{value}bSc"),
            &format!("--o={value}"),
            "--",
            "S",
        ];
        assert_eq!(filled(lines, &[("r", value), ("s", "S")]).expect(value), expected);
    }
    let braces = filled("args: ['{{{{.Names}}}}', 'x}}']\noptional_args: []", &[]);
    assert_eq!(braces.expect("filled"), ["{{.Names}}", "x}}"]);
}

/// TOOL-6 (S6.9): a value that starts with a dash is attached to an option, an operand, a number, allowed, or refused.
/// After a switch it would be an option.
#[test]
fn a_value_does_not_become_an_option() {
    let cases: &[(&str, Given<'_>, Option<&str>)] = &[
        ("'{{r}}'", &[("r", "-x")], Some("r")),
        ("'{{r}}'", &[("r", "--")], Some("r")),
        ("'{{r}}'", &[("r", "-")], Some("r")),
        ("'{{r}}'", &[("r", "x-")], None),
        ("'{{r}}'", &[("r", "−x")], None),
        ("run, '{{r}}'", &[("r", "-x")], Some("r")),
        ("-n, '{{r}}'", &[("r", "-x")], Some("r")),
        ("-u, '{{r}}'", &[("r", "--output=hit.txt")], Some("r")),
        ("--name, '{{r}}'", &[("r", "-x")], Some("r")),
        ("-n, '{{d}}'", &[("d", "-x")], None),
        ("-n, '{{e}}'", &[("e", "-e")], None),
        ("-n, '{{i}}'", &[("i", "-5")], None),
        ("run, '{{i}}'", &[("i", "-5")], Some("i")),
        ("--name=a, '{{r}}'", &[("r", "-x")], Some("r")),
        ("'-', '{{r}}'", &[("r", "-x")], Some("r")),
        ("-n, '{{r}}', '{{s}}'", &[("r", "1"), ("s", "-x")], Some("s")),
        ("-n, '{{r}}{{s}}'", &[("r", "-1"), ("s", "")], Some("r")),
        ("'-n{{r}}'", &[("r", "-x")], None),
        ("'--name={{r}}'", &[("r", "-x")], None),
        ("'-{{e}}'", &[("e", "-e")], None),
        ("--, '{{r}}'", &[("r", "-x")], None),
        ("'{{r}}', --, '{{s}}'", &[("r", "-x"), ("s", "-y")], Some("r")),
        ("'{{r}}{{s}}'", &[("r", ""), ("s", "-x")], Some("s")),
        ("'{{r}}-x'", &[("r", "")], Some("r")),
        ("'{{r}}-x'", &[("r", "a")], None),
        ("'x{{r}}'", &[("r", "-x")], None),
        ("'{{d}}'", &[("d", "-x")], None),
        ("'{{e}}'", &[("e", "-e")], None),
    ];
    for (args, values, culprit) in cases {
        // Optional parameters may appear in groups only.
        let lines = format!("optional_args: [{{ args: [{args}] }}]");
        let in_group = filled(&lines, values);
        let refused = in_group.err().map(|wrong| wrong.join("; "));
        match culprit {
            None => assert_eq!(refused, None, "{args} {values:?}"),
            Some(name) => {
                let text = refused.expect(args);
                assert!(
                    text.starts_with(&format!("`{name}`: must not make `-")),
                    "{args}: {text}"
                );
            }
        }
    }
}

/// TOOL-5 (S6.7): a group is present if all its parameters are, in order, with options before a `--`.
#[test]
fn groups_depend_on_their_parameters() {
    let groups = "args: [run, --, z]\n\
        optional_args: [{ when: x, args: ['--x={{x}}'] }, { args: ['{{y}}'] }, { when: f, args: [-f] }, \
        { when: [x, y], args: [-b] }]";
    let cases: &[(Given<'_>, &[&str])] = &[
        (&[], &["run", "--", "z"]),
        (&[("x", "1")], &["run", "--x=1", "--", "z"]),
        (&[("y", "-1")], &["run", "--", "z", "-1"]),
        (&[("f", "true")], &["run", "-f", "--", "z"]),
        (&[("f", "false")], &["run", "--", "z"]),
        (&[("x", ""), ("y", "")], &["run", "--x=", "-b", "--", "z", ""]),
    ];
    for (values, expected) in cases {
        assert_eq!(filled(groups, values).expect("filled"), *expected, "{values:?}");
    }
    let own_end = "optional_args: [{ args: [--, '{{x}}'] }, { args: [-y, '{{y}}'] }]";
    let both = filled(own_end, &[("x", "-a"), ("y", "b")]);
    assert_eq!(both.expect("filled"), ["-y", "b", "--", "-a"]);
    // After an option of another list, a value is not known to belong to that option.
    let apart = filled("args: [-v]\noptional_args: [{ args: ['{{x}}'] }]", &[("x", "-a")]);
    assert!(apart.is_err());
}

proptest! {
    /// TOOL-6 (S6.9): no value ever becomes an option that the author did not write, and the number of
    /// arguments is fixed.
    #[test]
    fn no_value_is_ever_an_option(r in ".{0,8}|-.{0,4}", s in ".{0,8}|-.{0,4}") {
        let lines = "args: [run, '{{r}}', '{{s}}{{r}}', '-o{{s}}', --, '{{s}}']\noptional_args: []";
        match filled(lines, &[("r", &r), ("s", &s)]) {
            Ok(arguments) => {
                prop_assert!(!r.starts_with('-') && !s.starts_with('-'));
                let expected = ["run".to_owned(), r.clone(), format!("{s}{r}"), format!("-o{s}"), "--".to_owned(), s];
                prop_assert_eq!(arguments, expected);
            }
            Err(_) => prop_assert!(r.starts_with('-') || s.starts_with('-')),
        }
    }

    /// TOOL-6: any text is parsed as an argument or refused, and without templates it stays unchanged.
    #[test]
    fn any_text_is_an_argument_or_refused(text in "[a{} -]{0,12}|.{0,12}") {
        let parsed = Argument::parse(&text, 1, None);
        if !text.contains("{{") && !text.contains("}}}}") {
            prop_assert_eq!(parsed.expect("an argument").fill(&Values::new()), text);
        }
    }
}
