//! Results as text: the best lines of the files that a search found, and a map of files with their definitions.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::definitions::Definition;
use crate::index::{Index, IndexedFolder, read};
use crate::search::{FoundFile, FoundFiles};
use crate::words;

/// Maximum length of a shown line in characters.
const MAX_LINE: usize = 200;
/// Maximum length of a definition's line in a map, in characters.
const MAX_SIGNATURE: usize = 120;
/// Maximum number of lines of one file.
const MAX_FILE_LINES: usize = 14;
/// Least number of lines of a file that is shown.
const MIN_FILE_LINES: usize = 3;
/// Maximum number of definitions of a file in a map.
const MAP_DEFINITIONS: usize = 8;
/// Weight of a definition's line among the best lines.
const DEFINITION_BONUS: f64 = 0.5;

/// A file with its best lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownFile {
    /// Path below the workspace.
    pub path: String,
    /// Score; higher is better.
    pub score: f64,
    /// Numbers and texts of the lines, in their order.
    pub lines: Vec<(u32, String)>,
}

impl Index {
    /// Returns the best lines of the files that a search found, in at most `budget` lines. Files that can no longer be
    /// read, or no longer may be, are left out.
    pub fn best_lines(&self, folder: &IndexedFolder, found: &FoundFiles, budget: usize) -> Vec<ShownFile> {
        let mut left = budget;
        let mut shown = Vec::new();
        for file in &found.files {
            let share = (left / 3).clamp(MIN_FILE_LINES, MAX_FILE_LINES).min(left);
            let Ok((bytes, _)) = read(folder, &file.path) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            let lines = match share {
                0 => Vec::new(),
                share => best(&text, file, &self.definitions(&file.path), &found.weights, share),
            };
            left = left.saturating_sub(lines.len());
            shown.push(ShownFile {
                path: file.path.clone(),
                score: file.score,
                lines,
            });
        }
        shown
    }

    /// Returns a map of the files that a search found, each with the lines of the definitions that fit best, in at
    /// most `budget` bytes. `None` if the query says too little about any file.
    pub fn map(&self, folder: &IndexedFolder, found: &FoundFiles, budget: usize) -> Option<String> {
        if found.files.is_empty() || (found.rare_words < 2 && !found.is_pointed) {
            return None;
        }
        let least = found.files.first().map_or(0.0, |file| file.score) * 0.35;
        let mut map = String::new();
        for file in found.files.iter().filter(|file| file.score >= least) {
            let Ok((bytes, _)) = read(folder, &file.path) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            let mut entry = format!("{}\n", file.path);
            for (line, signature) in signatures(&text, &self.definitions(&file.path), &found.weights) {
                let _ = writeln!(entry, "  {line}: {signature}");
            }
            if map.len() + entry.len() > budget {
                let name = format!("{}\n", file.path);
                if map.len() + name.len() <= budget {
                    map.push_str(&name);
                }
                continue;
            }
            map.push_str(&entry);
        }
        (!map.is_empty()).then_some(map)
    }

    /// Returns the definitions of a file.
    pub fn definitions(&self, path: &str) -> Vec<Definition> {
        let place = self.records.binary_search_by(|record| (*record.path).cmp(path));
        let record = place.ok().and_then(|number| self.records.get(number));
        record.map(|record| record.definitions()).unwrap_or_default()
    }
}

/// Returns the lines of a file's best chunks that have the weightiest words of the query.
fn best(
    text: &str,
    file: &FoundFile,
    definitions: &[Definition],
    weights: &HashMap<u32, f64>,
    count: usize,
) -> Vec<(u32, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_definition = |number: u32| definitions.binary_search_by_key(&number, |it| it.line).is_ok();
    let mut scored: Vec<(f64, u32, &str)> = Vec::new();
    for (rank, (first, last)) in file.chunks.iter().enumerate() {
        let share = 1.0 / (1.0 + rank as f64 * 0.5);
        for number in *first..=*last {
            let Some(line) = lines.get((number as usize).saturating_sub(1)) else {
                break;
            };
            let mut score = line_score(line, weights) * share;
            if is_definition(number) && (score > 0.0 || number == *first) {
                score += DEFINITION_BONUS;
            }
            if score > 0.0 && !line.trim().is_empty() {
                scored.push((score, number, line));
            }
        }
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scored.truncate(count);
    scored.sort_by_key(|(_, number, _)| *number);
    scored.dedup_by_key(|(_, number, _)| *number);
    scored
        .into_iter()
        .map(|(_, number, line)| (number, cut(line.trim_end(), MAX_LINE)))
        .collect()
}

fn line_score(line: &str, weights: &HashMap<u32, f64>) -> f64 {
    let mut seen: Vec<u32> = Vec::new();
    let mut score = 0.0;
    words::hashes(line.as_bytes(), |hash| {
        if let Some(weight) = weights.get(&hash)
            && !seen.contains(&hash)
        {
            seen.push(hash);
            score += weight;
        }
    });
    score
}

/// Returns the lines of the definitions that fit the query best, in their order.
fn signatures(text: &str, definitions: &[Definition], weights: &HashMap<u32, f64>) -> Vec<(u32, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut scored: Vec<(f64, u32, &str)> = Vec::new();
    for definition in definitions {
        let line = lines
            .get((definition.line as usize).saturating_sub(1))
            .copied()
            .unwrap_or_default();
        // Decorators and attributes come before the line with the name.
        let following = lines.iter().skip(definition.line as usize).take(4).copied();
        let named = std::iter::once(line).chain(following).enumerate();
        let Some((below, line)) = named
            .into_iter()
            .find(|(_, line)| line.contains(&definition.name))
        else {
            continue;
        };
        let number = definition
            .line
            .saturating_add(u32::try_from(below).unwrap_or_default());
        scored.push((
            line_score(&definition.name, weights) + 0.2 * line_score(line, weights),
            number,
            line,
        ));
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scored.truncate(MAP_DEFINITIONS);
    scored.sort_by_key(|(_, number, _)| *number);
    scored.dedup_by_key(|(_, number, _)| *number);
    scored
        .into_iter()
        .map(|(_, number, line)| (number, cut(line.trim(), MAX_SIGNATURE)))
        .collect()
}

/// Cuts a line after a number of characters; control characters become spaces.
fn cut(line: &str, most: usize) -> String {
    let clean = |sign: char| {
        if sign.is_control() && sign != '\t' {
            ' '
        } else {
            sign
        }
    };
    let mut text: String = line.chars().take(most).map(clean).collect();
    if line.chars().nth(most).is_some() {
        text.push('…');
    }
    text
}

/// Formats files with their best lines for a model or a person.
pub fn shown_text(files: &[ShownFile]) -> String {
    let mut text = String::new();
    for file in files {
        let _ = writeln!(text, "{}", file.path);
        for (number, line) in &file.lines {
            let _ = writeln!(text, "  {number}: {line}");
        }
    }
    text.truncate(text.trim_end().len());
    text
}
