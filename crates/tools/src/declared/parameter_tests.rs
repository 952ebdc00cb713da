//! Checks of values, by table.

use super::*;

fn text(pattern: Option<&str>, max_length: Option<usize>) -> Kind {
    Kind::Text {
        choices: None,
        pattern: pattern.map(|pattern| Pattern::new(pattern).expect("a pattern")),
        max_length,
    }
}

fn check(kind: Kind, value: Value) -> Result<String, String> {
    let parameter = Parameter {
        name: "a".to_owned(),
        description: None,
        kind,
        optional: false,
        allow_leading_dash: false,
        line: 1,
    };
    parameter.check(&value)
}

/// TOOL-6 (S6.9): a pattern applies to the whole value, however it is written.
#[test]
fn patterns_match_the_whole_value() {
    let cases = [
        ("[a-z]+", "abc", true),
        ("[a-z]+", "abc\n", false),
        ("[a-z]+", "", false),
        ("^[a-z]+$", "abc", true),
        ("^[a-z]+$", "abc\n", false),
        ("(?m)^[a-z]+$", "abc\nrm -rf /", false),
        ("(?m)^[a-z]+$", "abc\n", false),
        ("(?s)[a-z]+.", "abc\n", true),
        ("pods|services", "pods", true),
        ("pods|services", "pods; rm -rf ~", false),
        ("pods|services", "x services", false),
        ("a|ab", "ab", true),
        ("a*?", "aaa", true),
        ("[a-z]+", "ａｂｃ", false),
        (r"\w+", "äö", true),
    ];
    for (pattern, value, fits) in cases {
        let result = check(text(Some(pattern), None), value.into());
        assert_eq!(result.is_ok(), fits, "{pattern} {value:?}");
    }
    let error = check(text(Some("[a-z]+"), None), "pods; rm -rf ~\n".into());
    assert_eq!(
        error.expect_err("refused"),
        r"must match `[a-z]+` as a whole, not `pods; rm -rf ~\n`"
    );
}

/// TOOL-6: a pattern that is slow in other engines is not slow here.
#[test]
fn patterns_take_linear_time() {
    let value = format!("{}!", "a".repeat(100_000));
    assert!(check(text(Some("(a+)+"), None), value.into()).is_err());
}

/// TOOL-6 (S6.9): invalid values are refused, and the message says what is expected.
#[test]
fn values_are_checked() {
    let integer = || {
        Kind::Integer(Bounds {
            min: Some(1),
            max: Some(100),
        })
    };
    let at_least = || {
        Kind::Number(Bounds {
            min: Some(0.5),
            max: None,
        })
    };
    let choices = || Kind::Text {
        choices: Some(vec!["pods".to_owned(), "nodes".to_owned()]),
        pattern: None,
        max_length: None,
    };
    let cases: Vec<(Kind, Value, Result<&str, &str>)> = vec![
        (text(None, None), json!("; rm"), Ok("; rm")),
        (text(None, None), json!(5), Err("must be a string, not 5")),
        (
            text(None, None),
            json!(["a"]),
            Err("must be a string, not an array"),
        ),
        (
            text(None, None),
            json!("a\0b"),
            Err("must not contain a NUL character"),
        ),
        (text(None, Some(3)), json!("äöü"), Ok("äöü")),
        (
            text(None, Some(3)),
            json!("abcd"),
            Err("must have at most 3 characters, not 4"),
        ),
        (choices(), json!("pods"), Ok("pods")),
        (
            choices(),
            json!("pods; rm -rf ~"),
            Err("must be one of pods, nodes, not `pods; rm -rf ~`"),
        ),
        (
            choices(),
            json!("Pods"),
            Err("must be one of pods, nodes, not `Pods`"),
        ),
        (integer(), json!(7), Ok("7")),
        (integer(), json!(7.0), Ok("7")),
        (integer(), json!(7.5), Err("must be a whole number, not 7.5")),
        (
            integer(),
            json!("7"),
            Err("must be a whole number, not the string `7`"),
        ),
        (integer(), json!(0), Err("must be from 1 to 100, not 0")),
        (integer(), json!(101), Err("must be from 1 to 100, not 101")),
        (
            integer(),
            json!(u64::MAX),
            Err("must be a whole number, not 18446744073709551615"),
        ),
        (at_least(), json!(1.25), Ok("1.25")),
        (at_least(), json!(2), Ok("2")),
        (at_least(), json!(0), Err("must be at least 0.5, not 0")),
        (
            at_least(),
            json!("x"),
            Err("must be a number, not the string `x`"),
        ),
        (Kind::Boolean, json!(true), Ok("true")),
        (
            Kind::Boolean,
            json!("true"),
            Err("must be true or false, not the string `true`"),
        ),
        (Kind::Boolean, json!(null), Err("must be true or false, not null")),
    ];
    for (kind, value, expected) in cases {
        let result = check(kind, value.clone());
        let result = result.as_deref().map_err(String::as_str);
        assert_eq!(result, expected, "{value}");
    }
}

/// TOOL-5: the pattern in the schema means the same to engines that do not match whole values.
#[test]
fn the_model_sees_whole_patterns() {
    let cases = [
        ("[a-z]+", "^(?:[a-z]+)$"),
        ("^[a-z]+$", "^[a-z]+$"),
        ("^a|b$", "^(?:^a|b$)$"),
        (r"^a\$", r"^(?:^a\$)$"),
    ];
    for (pattern, expected) in cases {
        assert_eq!(Pattern::new(pattern).expect("a pattern").whole(), expected);
    }
}
