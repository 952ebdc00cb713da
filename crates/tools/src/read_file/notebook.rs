//! Renders notebooks as text: the cells and their outputs.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use windlass_core::text::{count, shorten};

/// Maximum size of a rendered notebook. A larger one is shown as a plain file.
pub(super) const MAX_BYTES: u64 = 16_000_000;
/// Maximum number of characters of an output.
const MAX_OUTPUT_CHARS: usize = 2000;

pub(super) fn is_named(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("ipynb"))
}

#[derive(Deserialize)]
struct Notebook {
    nbformat: u64,
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    source: Lines,
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<Output>,
}

/// A text, whole or in lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Pieces(Vec<String>),
}

impl Lines {
    fn text(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Pieces(pieces) => pieces.concat(),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
enum Output {
    Stream {
        name: String,
        text: Lines,
    },
    ExecuteResult {
        data: Map<String, Value>,
    },
    DisplayData {
        data: Map<String, Value>,
    },
    Error {
        ename: String,
        evalue: String,
    },
    #[serde(other)]
    Unknown,
}

/// Renders a notebook. Returns `None` if the file is not a notebook, or has an older format.
pub(super) fn render(json: &str) -> Option<String> {
    let notebook: Notebook = serde_json::from_str(json).ok()?;
    if notebook.nbformat < 4 {
        return None;
    }
    let cells = count(notebook.cells.len(), "cell");
    let mut text =
        format!("[notebook with {cells}; line numbers are those of this view, the file itself is JSON]\n");
    for (index, cell) in notebook.cells.into_iter().enumerate() {
        let run = cell
            .execution_count
            .map(|number| format!(", run {number}"))
            .unwrap_or_default();
        text.push_str(&format!("\n[cell {}: {}{run}]\n", index + 1, cell.cell_type));
        push(&mut text, &cell.source.text());
        for output in cell.outputs {
            show(&mut text, output);
        }
    }
    Some(text)
}

fn show(text: &mut String, output: Output) {
    match output {
        Output::Stream { name, text: said } => {
            text.push_str(&format!("[output: {name}]\n"));
            push(text, &cut(&said.text()));
        }
        Output::ExecuteResult { data } | Output::DisplayData { data } => show_data(text, data),
        Output::Error { ename, evalue } => {
            text.push_str("[output: error]\n");
            push(text, &cut(&format!("{ename}: {evalue}")));
        }
        Output::Unknown => text.push_str("[output of an unknown kind]\n"),
    }
}

/// Shows one output: its plain text, or else the first other text; all other formats are named.
fn show_data(text: &mut String, mut data: Map<String, Value>) {
    let is_text =
        |kind: &&String| kind.starts_with("text/") || kind.ends_with("+json") || *kind == "application/json";
    let plain = "text/plain".to_owned();
    let best = Some(&plain)
        .filter(|plain| data.contains_key(*plain))
        .or_else(|| data.keys().find(is_text))
        .cloned();
    if let Some(kind) = best {
        let value = data.shift_remove(&kind).unwrap_or_default();
        let said = match Lines::deserialize(&value) {
            Ok(lines) => lines.text(),
            Err(_) => value.to_string(),
        };
        text.push_str(&format!("[output: {kind}]\n"));
        push(text, &cut(&said));
    }
    for kind in data.keys().filter(|kind| !is_text(kind)) {
        text.push_str(&format!("[output: {kind}, not shown]\n"));
    }
}

fn cut(said: &str) -> String {
    match shorten(said, MAX_OUTPUT_CHARS) {
        (said, 0) => said.to_owned(),
        (said, more) => format!("{said}\n[… {more} more characters]"),
    }
}

fn push(text: &mut String, piece: &str) {
    text.push_str(piece);
    if !piece.is_empty() && !piece.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// TOOL-2: a notebook is shown cell by cell, with its text outputs and the names of the others.
    #[test]
    fn notebooks_are_readable() {
        let long = "x".repeat(MAX_OUTPUT_CHARS + 5);
        let notebook = json!({
            "nbformat": 4, "nbformat_minor": 5, "metadata": {},
            "cells": [
                { "cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "Text"] },
                { "cell_type": "code", "metadata": {}, "execution_count": 3, "source": "plot()", "outputs": [
                    { "output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"] },
                    { "output_type": "display_data", "metadata": {}, "data": {
                        "image/png": "iVBORw0KGgo=", "text/plain": ["<Figure>"] } },
                    { "output_type": "execute_result", "metadata": {}, "execution_count": 3, "data": {
                        "text/html": "<b>1</b>", "application/json": { "a": 1 } } },
                    { "output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": [] },
                    { "output_type": "hologram", "depth": 3 },
                    { "output_type": "stream", "name": "stderr", "text": long },
                ] },
                { "cell_type": "code", "execution_count": null, "source": [], "outputs": [] },
            ],
        });
        let expected = format!(
            "[notebook with 3 cells; line numbers are those of this view, the file itself is JSON]\n\n[cell 1: \
             markdown]\n# Title\nText\n\n[cell 2: code, run 3]\nplot()\n[output: stdout]\na\nb\n[output: \
             text/plain]\n<Figure>\n[output: image/png, not shown]\n[output: text/html]\n<b>1</b>\n[output: \
             error]\nValueError: no\n[output of an unknown kind]\n[output: stderr]\n{}\n[… 5 more characters]\n\n[cell \
             3: code]\n",
            "x".repeat(MAX_OUTPUT_CHARS)
        );
        assert_eq!(render(&notebook.to_string()), Some(expected));
    }

    #[test]
    fn what_is_no_notebook_is_not_rendered() {
        for text in [
            "",
            "{}",
            "[]",
            "{\"nbformat\": 4}",
            "{\"nbformat\": 3, \"cells\": []}",
            "{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"code\"}]}",
        ] {
            assert_eq!(render(text), None, "{text}");
        }
    }
}
