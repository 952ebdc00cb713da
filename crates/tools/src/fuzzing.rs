//! Checks that `cargo xtask fuzz` runs on arbitrary bytes, and that the tests run on the stored inputs.
//!
//! Each function takes the bytes of one input and panics when a check fails. Nothing here runs a program, and
//! `paths` only uses files of its own. An input of several texts has a NUL between them.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Parses a patch and applies it to a file. With a third text, the diff from the second to the third must
/// produce the third.
pub fn patch(data: &[u8]) {
    let [text, file, other] = texts(data);
    crate::apply_patch::fuzz(&text, &file);
    if !other.is_empty() {
        crate::apply_patch::fuzz_diff(&file, &other);
    }
}

/// Edits a file: its text, the old piece, the new piece. A fourth text means to replace all places.
pub fn edit(data: &[u8]) {
    let [file, old, new, all] = texts(data);
    crate::edit_file::fuzz(&file, &old, &new, !all.is_empty());
}

/// Parses a file of declared tools and fills in the arguments of a call.
///
/// The input is either a whole file and the JSON of a call; or, because few texts are such a file, the
/// arguments of one tool, one per line, and `name=value` for each parameter. A line that starts with `?`
/// starts a group and names its conditions.
pub fn declared(data: &[u8]) {
    let (file, call) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let file = String::from_utf8_lossy(file);
    let call = String::from_utf8_lossy(call.strip_prefix(b"\0").unwrap_or(call));
    if file.contains("tools:") {
        crate::declared::fuzz(&file, &call);
    } else {
        crate::declared::fuzz(&probe(&file), &given(&call));
    }
}

/// Returns a file with one tool that has these arguments.
fn probe(lines: &str) -> String {
    let head = "tools:\n  - name: probe\n    description: x\n    category: read\n    cmd: probe\n    parameters:\n      \
        { r: { type: string }, s: { type: string }, x: { type: string, optional: true }, \
        d: { type: string, optional: true, allow_leading_dash: true }, \
        e: { type: string, optional: true, enum: ['-e', e, ''] }, f: { type: boolean, optional: true }, \
        n: { type: integer, optional: true } }\n    ";
    let mut groups = vec![(String::new(), Vec::new())];
    for line in lines.lines() {
        match (line.strip_prefix('?'), groups.last_mut()) {
            (None, Some((_, arguments))) => arguments.push(line),
            (name, _) => groups.push((name.unwrap_or_default().to_owned(), Vec::new())),
        }
    }
    let mut groups = groups.into_iter();
    let (_, plain) = groups.next().unwrap_or_default();
    // An unused parameter would be refused.
    let used = "'{{r}}', '{{s}}', '{{x}}', '{{d}}', '{{e}}', '{{f}}', '{{n}}'";
    let groups: String = groups
        .map(|(when, arguments)| match when.as_str() {
            "" => format!(", {{ args: {} }}", Value::from(arguments)),
            when => format!(
                ", {{ when: [{}], args: {} }}",
                Value::from(when),
                Value::from(arguments)
            ),
        })
        .collect();
    format!(
        "{head}args: {}\n    optional_args: [{{ args: [{used}] }}{groups}]\n",
        Value::from(plain)
    )
}

/// Builds the JSON of a call from `name=value`, with the types that `probe` declares.
fn given(values: &str) -> String {
    let pairs = values.split('\0').filter_map(|pair| pair.split_once('='));
    let typed = |name: &str, value: &str| match name {
        "f" => Value::from(value == "true"),
        "n" => value
            .parse::<i64>()
            .map_or_else(|_| Value::from(value), Value::from),
        _ => Value::from(value),
    };
    let mut call: Map<String, Value> = ["r", "s"]
        .map(|name| (name.to_owned(), "".into()))
        .into_iter()
        .collect();
    call.extend(pairs.map(|(name, value)| (name.to_owned(), typed(name, value))));
    Value::Object(call).to_string()
}

/// Splits an input into its texts; missing ones are empty.
fn texts<const N: usize>(data: &[u8]) -> [Cow<'_, str>; N] {
    let mut parts = data.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| String::from_utf8_lossy(parts.next().unwrap_or_default()))
}
