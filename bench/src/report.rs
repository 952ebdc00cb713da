//! Prints figures as a table.

use std::path::Path;

use anyhow::{Context, Result};

/// One figure and its target.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) name: String,
    /// Measured value of Windlass, as text.
    pub(crate) agent: String,
    /// Measured value of the floor, as text.
    pub(crate) floor: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
}

/// Target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Reported without a target.
    None,
}

impl Figure {
    pub(crate) fn is_met(&self) -> bool {
        match self.target {
            Target::AtMost(most) => self.value <= most,
            Target::AtLeast(least) => self.value >= least,
            Target::None => true,
        }
    }

    fn cells(&self) -> [String; 6] {
        let unit = self.unit;
        let target = match self.target {
            Target::AtMost(most) => format!("≤ {most} {unit}"),
            Target::AtLeast(least) => format!("≥ {least} {unit}"),
            Target::None => "–".to_owned(),
        };
        let verdict = match self.target {
            Target::None => "",
            _ if self.is_met() => "met",
            _ => "MISSED",
        };
        let value = if self.value >= 1_000.0 {
            format!("{:.0}", self.value)
        } else {
            format!("{:.2}", self.value)
        };
        [
            self.name.clone(),
            self.agent.clone(),
            self.floor.clone(),
            format!("{value} {unit}"),
            target,
            verdict.to_owned(),
        ]
    }
}

/// Formats a Markdown table that also reads well as plain text.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut rows = vec![["figure", "windlass", "floor", "result", "target", ""].map(str::to_owned)];
    rows.extend(figures.iter().map(Figure::cells));
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&line(row));
        if index == 0 {
            text.push_str(&format!("|{}|\n", rule.join("|")));
        }
    }
    text
}

/// Writes the table to `RESULTS.md` beside the README.
pub(crate) fn write(table: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md");
    let text = format!(
        "# Results\n\nWritten by `cargo xtask bench --write` on 2 cores, Linux. Only the ratios carry over to other machines; \
         [README.md](README.md) explains each figure.\n\n{table}"
    );
    std::fs::write(&path, text).context("cannot write RESULTS.md")
}
