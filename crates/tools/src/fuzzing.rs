//! What `cargo xtask fuzz` feeds with anything, and the ordinary tests with the inputs that were kept.
//!
//! Each function takes the bytes of one input and panics when something does not hold. Nothing here runs a program,
//! and `paths` uses files of its own only. An input of several texts has a NUL between them.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Reads a patch and applies it to a file. With a third text: the diff from the second to the third must lead there.
pub fn patch(data: &[u8]) {
    let [text, file, other] = texts(data);
    crate::apply_patch::fuzz(&text, &file);
    if !other.is_empty() {
        crate::apply_patch::fuzz_diff(&file, &other);
    }
}

/// Edits a file: its text, the old piece, the new piece. A fourth text means that all places are meant.
pub fn edit(data: &[u8]) {
    let [file, old, new, all] = texts(data);
    crate::edit_file::fuzz(&file, &old, &new, !all.is_empty());
}

/// Reads a file of declared tools and fills in the arguments of a call.
///
/// Either a whole file and the JSON of a call; or, because few texts are such a file, the arguments of one tool, a line
/// each, and `name=value` for each parameter. A line that begins with `?` begins a group and says what it waits for.
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

/// A file with one tool that has these arguments.
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
    // A parameter that is used nowhere would be refused.
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

/// The JSON of a call from `name=value`, of the types that `probe` declares.
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

/// The texts of an input; those that are missing are empty.
fn texts<const N: usize>(data: &[u8]) -> [Cow<'_, str>; N] {
    let mut parts = data.splitn(N, |byte| *byte == 0);
    std::array::from_fn(|_| String::from_utf8_lossy(parts.next().unwrap_or_default()))
}
