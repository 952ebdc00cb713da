//! The text of a skill with its arguments, variables and commands.

use std::path::Path;

use crate::front::Skill;

/// Maximum number of commands in one skill.
const MOST_COMMANDS: usize = 20;

/// Values that a skill's text can name.
#[derive(Debug, Clone, Copy)]
pub struct SkillVariables<'a> {
    /// The arguments, as they were typed.
    pub arguments: &'a str,
    /// Folder of the skill's files.
    pub folder: &'a Path,
    /// Folder of the session.
    pub project: &'a Path,
    /// Id of the session.
    pub session: &'a str,
    /// Folder of the plugin that the skill belongs to.
    pub plugin: Option<&'a Path>,
}

/// A part of a skill's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A command whose output takes its place.
    Command(String),
}

/// A skill's text, with everything filled in but the output of its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

impl Template {
    /// Fills in the arguments and variables. Commands are taken from the skill's own text only, never from the
    /// arguments.
    pub fn new(skill: &Skill, variables: &SkillVariables<'_>) -> Self {
        let words = split(variables.arguments);
        let mut filler = Filler {
            skill,
            variables,
            words: &words,
            has_arguments: false,
        };
        let mut pieces = Vec::new();
        for piece in cut(&skill.body) {
            pieces.push(match piece {
                Piece::Text(text) => Piece::Text(filler.fill(&text)),
                Piece::Command(text) => Piece::Command(filler.fill(&text)),
            });
        }
        if !filler.has_arguments && !variables.arguments.trim().is_empty() {
            pieces.push(Piece::Text(format!(
                "\n\nARGUMENTS: {}",
                variables.arguments.trim()
            )));
        }
        Self(pieces)
    }

    /// Returns true if there are commands in the text.
    pub fn has_commands(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Command(_)))
    }
}

/// Separates `` !`command` `` from the text around it. It counts at the start of a line or after a space.
fn cut(body: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut text, mut rest) = (String::new(), body);
    while let Some(at) = rest.find("!`") {
        let (before, after) = rest.split_at(at);
        let after = after.get(2..).unwrap_or_default();
        let starts = before.chars().next_back().or(text.chars().next_back());
        let is_start = starts.is_none_or(char::is_whitespace);
        let end = after
            .find('`')
            .filter(|end| !after.get(..*end).unwrap_or_default().contains('\n'));
        let command = end.and_then(|end| after.get(..end)).map(str::trim);
        text.push_str(before);
        match (command, end) {
            (Some(command), Some(end))
                if is_start && !command.is_empty() && pieces.len() < 2 * MOST_COMMANDS =>
            {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Command(command.to_owned()));
                rest = after.get(end + 1..).unwrap_or_default();
            }
            _ => {
                text.push_str("!`");
                rest = after;
            }
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces
}

struct Filler<'a> {
    skill: &'a Skill,
    variables: &'a SkillVariables<'a>,
    words: &'a [String],
    has_arguments: bool,
}

impl Filler<'_> {
    fn fill(&mut self, body: &str) -> String {
        let mut text = String::with_capacity(body.len());
        let mut rest = body;
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            match self.value(after) {
                Some((value, left)) => {
                    text.push_str(&value);
                    rest = left;
                }
                None => {
                    text.push('$');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        text
    }

    /// Returns the value of the name after a dollar sign, and the text after the name.
    fn value<'t>(&mut self, after: &'t str) -> Option<(String, &'t str)> {
        if let Some(braced) = after.strip_prefix('{') {
            let (name, left) = braced.split_once('}')?;
            return Some((self.variable(name)?, left));
        }
        if let Some(left) = after.strip_prefix("ARGUMENTS") {
            self.has_arguments = true;
            let index = left.strip_prefix('[').and_then(|inner| inner.split_once(']'));
            if let Some((index, left)) = index
                && let Ok(index) = index.parse::<usize>()
            {
                return Some((self.word(index), left));
            }
            return Some((self.variables.arguments.to_owned(), left));
        }
        let digits = after
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(after.len());
        if let (Some(number), Some(left)) = (after.get(..digits), after.get(digits..))
            && let Ok(index) = number.parse::<usize>()
            && digits <= 2
        {
            self.has_arguments = true;
            return Some((self.word(index), left));
        }
        let end = after
            .find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-')
            .unwrap_or(after.len());
        let name = after.get(..end)?;
        let place = self
            .skill
            .options
            .arguments
            .iter()
            .position(|known| known == name)?;
        self.has_arguments = true;
        Some((self.word(place), after.get(end..)?))
    }

    fn word(&self, index: usize) -> String {
        self.words.get(index).cloned().unwrap_or_default()
    }

    fn variable(&self, name: &str) -> Option<String> {
        let path = |path: &Path| path.display().to_string();
        let variables = self.variables;
        match name {
            "CLAUDE_SKILL_DIR" | "WINDLASS_SKILL_DIR" | "SKILL_DIR" => Some(path(variables.folder)),
            "CLAUDE_PROJECT_DIR" | "WINDLASS_PROJECT_DIR" => Some(path(variables.project)),
            "CLAUDE_SESSION_ID" | "WINDLASS_SESSION_ID" => Some(variables.session.to_owned()),
            "CLAUDE_PLUGIN_ROOT" | "PLUGIN_ROOT" => variables.plugin.map(path),
            _ => None,
        }
    }
}

/// Splits arguments into words; a word in quotes may contain spaces.
fn split(arguments: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let (mut is_open, mut quote) = (false, None);
    for letter in arguments.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') if !is_open => {
                quote = Some(letter);
                is_open = true;
            }
            (None, letter) if letter.is_whitespace() => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            (_, letter) => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    words
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
