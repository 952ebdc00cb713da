//! SAFE-6: the question whether a call may run, and its answers: one model for every front end.
//!
//! A front end that sees keys passes them to [`Approval::press`] and calls [`Approval::tick`] when
//! [`Approval::due_ms`] has passed. One that sees whole lines passes them to [`Approval::line`]. Either draws the
//! question, its reasons, and [`Approval::choices`] as it likes.
//!
//! Words never approve anything. A letter answers only if no other character follows within [`HOLD_MS`];
//! otherwise both begin a text that tells the model what to do instead. A lasting yes is confirmed, and nothing
//! can be approved that was not shown completely.

use windlass_core::event::Waiting;
use windlass_core::permission::Answer;

/// Time without another character after which a letter is an answer, in milliseconds.
pub const HOLD_MS: u64 = 250;

/// A permission request and the state of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    tool: String,
    subjects: Vec<String>,
    reasons: Vec<String>,
    preview: Option<String>,
    is_once_only: bool,
    is_seen: bool,
    selected: usize,
    stage: Stage,
    /// A letter that may become a word, and the time it was pressed.
    held: Option<(char, u64)>,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Choosing,
    /// A lasting yes waits for its confirmation.
    Confirming(ApprovalChoice),
    /// The user writes what to do instead.
    Telling,
}

/// An answer that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// Yes, this time.
    Once,
    /// Yes, and not asked again in this session.
    Session,
    /// Yes, and never asked again in this folder.
    Always,
    /// No.
    No,
    /// No, and a text for the model.
    Tell,
}

impl ApprovalChoice {
    /// Returns the letter that chooses it.
    pub fn letter(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 's',
            Self::Always => 'a',
            Self::No => 'n',
            Self::Tell => 't',
        }
    }

    /// Returns the text of the row.
    pub fn text(self) -> &'static str {
        match self {
            Self::Once => "Yes, once",
            Self::Session => "Yes, for this session",
            Self::Always => "Yes, always in this folder",
            Self::No => "No",
            Self::Tell => "No, and tell it what to do instead",
        }
    }

    /// Returns one or two words for it, for small screens.
    pub fn brief(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::No => "no",
            Self::Tell => "tell it",
        }
    }
}

/// A key, as far as an approval knows keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKey {
    /// A character.
    Character(char),
    /// The row above.
    Up,
    /// The row below.
    Down,
    /// Takes the selected row.
    Enter,
    /// Goes back.
    Escape,
    /// Any other key that is meant for the question.
    Other,
}

/// Effect of a key or a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressed {
    /// The key is not meant for the question.
    Ignored,
    /// The key was used; the question may look different.
    Taken,
    /// The question is answered.
    Answered(Answer),
    /// The user wants to see all of it.
    View,
    /// The user tells the model what to do instead, beginning with this text.
    Tell(String),
}

/// Functions that make untrusted text safe to show.
#[derive(Clone, Copy)]
pub struct Cleaning {
    /// For a text of one line.
    pub line: fn(&str) -> String,
    /// For a text of several lines.
    pub text: fn(&str) -> String,
}

impl Approval {
    /// Creates the question of a permission request; `None` for other events.
    pub fn of(waiting: &Waiting, clean: Cleaning) -> Option<Self> {
        let Waiting::PermissionRequest {
            tool,
            subjects,
            reasons,
            preview,
            once_only,
            agent,
            ..
        } = waiting
        else {
            return None;
        };
        let asker = agent.as_ref().map(|agent| format!("agent {agent} asks"));
        Some(Self {
            tool: (clean.line)(tool),
            subjects: subjects.iter().map(|subject| (clean.line)(subject)).collect(),
            reasons: asker
                .iter()
                .chain(reasons)
                .map(|reason| sentence(&(clean.line)(reason)))
                .collect(),
            preview: preview.as_deref().map(clean.text),
            is_once_only: *once_only,
            is_seen: false,
            selected: 0,
            stage: Stage::Choosing,
            held: None,
            hint: None,
        })
    }

    /// Returns the question, without its reasons.
    pub fn question(&self) -> String {
        match self.tool.as_str() {
            "bash" => "Run this command?".to_owned(),
            "write_file" => "Write this file?".to_owned(),
            "edit_file" => "Change this file?".to_owned(),
            "apply_patch" => "Apply this patch?".to_owned(),
            "read_file" => "Read this file?".to_owned(),
            "fetch" => "Fetch this page?".to_owned(),
            tool => format!("Run {tool}?"),
        }
    }

    /// Returns the reasons for asking, as sentences.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// Returns the commands, paths or hosts of the call.
    pub fn subjects(&self) -> &[String] {
        &self.subjects
    }

    /// Returns the command or the diff.
    pub fn preview(&self) -> Option<&str> {
        self.preview.as_deref()
    }

    /// Returns the answers that can be chosen, in order.
    pub fn choices(&self) -> &'static [ApprovalChoice] {
        if self.is_once_only {
            &[ApprovalChoice::Once, ApprovalChoice::No, ApprovalChoice::Tell]
        } else {
            &[
                ApprovalChoice::Once,
                ApprovalChoice::Session,
                ApprovalChoice::Always,
                ApprovalChoice::No,
                ApprovalChoice::Tell,
            ]
        }
    }

    /// Returns the selected row.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Returns the lasting yes that waits for its confirmation, and the question about it.
    pub fn confirmation(&self) -> Option<(ApprovalChoice, String)> {
        let Stage::Confirming(choice) = self.stage else {
            return None;
        };
        let scope = match choice {
            ApprovalChoice::Always => "Never ask again in this folder",
            _ => "Do not ask again in this session",
        };
        let about = self.subjects.join(" · ");
        Some((
            choice,
            format!("{scope} about {} {about}?", self.tool).replace(" ?", "?"),
        ))
    }

    /// Returns a hint about the last key or line.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns true while the user writes what to do instead.
    pub fn is_telling(&self) -> bool {
        self.stage == Stage::Telling
    }

    /// Begins a text that tells the model what to do instead.
    pub fn tell(&mut self) {
        self.held = None;
        self.stage = Stage::Telling;
    }

    /// Records whether the user can see the whole call. Until then, nothing can be approved.
    pub fn set_seen(&mut self, is_seen: bool) {
        self.is_seen = is_seen;
    }

    /// Returns the time at which [`Self::tick`] must be called.
    pub fn due_ms(&self) -> Option<u64> {
        self.held.map(|(_, at)| at.saturating_add(HOLD_MS))
    }

    /// Answers with a letter that no other character followed.
    pub fn tick(&mut self, now_ms: u64) -> Pressed {
        match self.held {
            Some((letter, _)) if self.due_ms().is_some_and(|due| due <= now_ms) => {
                self.held = None;
                self.letter(letter)
            }
            _ => Pressed::Ignored,
        }
    }

    /// Handles a key.
    pub fn press(&mut self, key: ApprovalKey, now_ms: u64) -> Pressed {
        if self.is_telling() {
            if key != ApprovalKey::Escape {
                return Pressed::Ignored;
            }
            self.stage = Stage::Choosing;
            return Pressed::Taken;
        }
        // A letter whose time has passed counts before the next key.
        let due = self.tick(now_ms);
        if !matches!(due, Pressed::Ignored | Pressed::Taken) {
            return due;
        }
        if due == Pressed::Ignored {
            self.hint = None;
        }
        match key {
            ApprovalKey::Character(character) => self.character(character, now_ms),
            ApprovalKey::Up => self.select(self.selected.checked_sub(1)),
            ApprovalKey::Down => self.select(Some(self.selected + 1)),
            ApprovalKey::Enter => match (self.held.take(), self.stage) {
                (Some((letter, _)), _) => self.letter(letter),
                (None, Stage::Confirming(choice)) => self.choose(choice),
                (None, _) => match self.choices().get(self.selected) {
                    Some(choice) => self.choose(*choice),
                    None => Pressed::Taken,
                },
            },
            ApprovalKey::Escape => {
                let was_held = self.held.take().is_some();
                let was_confirming = std::mem::replace(&mut self.stage, Stage::Choosing) != Stage::Choosing;
                if was_held || was_confirming {
                    Pressed::Taken
                } else {
                    Pressed::Ignored
                }
            }
            ApprovalKey::Other => self.explain(),
        }
    }

    /// Handles a line of a front end that has no keys.
    pub fn line(&mut self, line: &str) -> Pressed {
        self.hint = None;
        let line = line.trim();
        if self.is_telling() && !line.is_empty() {
            return Pressed::Answered(Answer::NoBecause(line.to_owned()));
        }
        let mut characters = line.chars();
        match (characters.next(), characters.next()) {
            (None, _) => self.explain(),
            (Some(digit @ '1'..='9'), None) => {
                match self.row(digit).and_then(|row| self.choices().get(row)) {
                    Some(choice) => self.choose(*choice),
                    None => self.explain(),
                }
            }
            (Some(letter), None) => self.letter(letter),
            _ if line.eq_ignore_ascii_case("no") => Pressed::Answered(Answer::No),
            _ if is_a_yes(line) => {
                self.hint = Some("Words do not approve. Type the letter y for yes.".to_owned());
                Pressed::Taken
            }
            _ => Pressed::Answered(Answer::NoBecause(line.to_owned())),
        }
    }

    fn character(&mut self, character: char, now_ms: u64) -> Pressed {
        match self.held.take() {
            Some((first, _)) => {
                self.stage = Stage::Telling;
                Pressed::Tell([first, character].iter().collect())
            }
            None if character.is_whitespace() => self.explain(),
            None => {
                self.held = Some((character, now_ms));
                Pressed::Taken
            }
        }
    }

    /// Handles a letter that stands alone.
    fn letter(&mut self, letter: char) -> Pressed {
        let letter = letter.to_ascii_lowercase();
        if let Some(row) = self.row(letter) {
            return self.select(Some(row));
        }
        if letter == 'v' {
            self.stage = Stage::Choosing;
            return Pressed::View;
        }
        let chosen = self.choices().iter().find(|choice| choice.letter() == letter);
        match chosen {
            Some(choice) => self.choose(*choice),
            None => self.explain(),
        }
    }

    fn row(&self, digit: char) -> Option<usize> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        number.checked_sub(1).filter(|row| *row < self.choices().len())
    }

    fn select(&mut self, row: Option<usize>) -> Pressed {
        let rows = self.choices().len();
        self.held = None;
        self.stage = Stage::Choosing;
        self.selected = row.map_or(rows - 1, |row| row % rows);
        Pressed::Taken
    }

    fn choose(&mut self, choice: ApprovalChoice) -> Pressed {
        let stage = std::mem::replace(&mut self.stage, Stage::Choosing);
        match choice {
            ApprovalChoice::No => Pressed::Answered(Answer::No),
            ApprovalChoice::Tell => {
                self.stage = Stage::Telling;
                Pressed::Tell(String::new())
            }
            _ if !self.is_seen => {
                self.hint = Some("Part of it is out of sight: v shows everything, then answer.".to_owned());
                Pressed::Taken
            }
            ApprovalChoice::Once => Pressed::Answered(Answer::Once),
            ApprovalChoice::Session if stage == Stage::Confirming(choice) => {
                Pressed::Answered(Answer::Session)
            }
            ApprovalChoice::Always if stage == Stage::Confirming(choice) => Pressed::Answered(Answer::Always),
            ApprovalChoice::Session | ApprovalChoice::Always => {
                let row = self.choices().iter().position(|offered| *offered == choice);
                self.selected = row.unwrap_or(self.selected);
                self.stage = Stage::Confirming(choice);
                Pressed::Taken
            }
        }
    }

    /// Says which keys answer.
    fn explain(&mut self) -> Pressed {
        self.stage = Stage::Choosing;
        let letters: Vec<String> = self
            .choices()
            .iter()
            .map(|choice| choice.letter().to_string())
            .collect();
        self.hint = Some(format!(
            "Not a valid answer: press {}, or choose with the arrows and enter.",
            letters.join(", ")
        ));
        Pressed::Taken
    }
}

/// Returns true for a line that was surely meant as a yes. It approves nothing, but is no text for the model
/// either.
fn is_a_yes(line: &str) -> bool {
    const WORDS: &[&str] = &[
        "yes", "yep", "yeah", "ok", "okay", "sure", "session", "always", "once", "yy", "ss", "aa",
    ];
    WORDS.iter().any(|word| line.eq_ignore_ascii_case(word))
}

/// Returns a reason as a sentence.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>());
    let text = format!("{}{}", first.unwrap_or_default(), letters.as_str());
    if text.ends_with(['.', '!', '?', ':']) || text.is_empty() {
        text
    } else {
        format!("{text}.")
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
