use super::*;

fn code(line: &str) -> (Value, i64) {
    match Incoming::parse(line.as_bytes()) {
        Incoming::Invalid { id, error } => (id, error.code),
        other => panic!("{line} is valid: {other:?}"),
    }
}

/// ACP-1: a malformed line gets -32700, a JSON value that is no message -32600, with its id if it has one.
#[test]
fn malformed_lines_have_their_codes() {
    let cases = [
        ("{", Value::Null, -32700),
        ("\u{0}", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        ("1", Value::Null, -32600),
        (r#"{"foo":1}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"1.0","id":4,"method":"x"}"#, json!(4), -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, json!("a"), -32600),
    ];
    for (line, id, expected) in cases {
        assert_eq!(code(line), (id, expected), "{line}");
    }
}

#[test]
fn messages_are_told_apart() {
    let parse = |line: &str| Incoming::parse(line.as_bytes());
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":"7","method":"m","params":[1]}"#),
        Incoming::Request {
            id: json!("7"),
            method: "m".to_owned(),
            params: json!([1])
        }
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","method":"m"}"#),
        Incoming::Notification {
            method: "m".to_owned(),
            params: Value::Null
        }
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no\nway"}}"#),
        Incoming::Response {
            id: json!(7),
            result: Err(RpcError::new(-32601, "no way"))
        }
    );
}

/// ACP-1: a huge line is skipped without keeping it in memory, and the next one is read.
#[test]
fn huge_lines_are_skipped() {
    let text = format!("{}\nshort\n{}\nlast", "x".repeat(5000), "y".repeat(101));
    let mut input = BufReader::with_capacity(64, text.as_bytes());
    let mut lines = Vec::new();
    while let Some(line) = read_line(&mut input, 100) {
        lines.push(line.map(|line| String::from_utf8_lossy(&line).into_owned()));
    }
    let expected = [
        Err(TooLong),
        Ok("short".to_owned()),
        Err(TooLong),
        Ok("last".to_owned()),
    ];
    assert_eq!(lines, expected);
}
