//! Chips: long pastes and images that are a single unit in the text. Each is one character, its mark, so that
//! movement, deletion and undo need no special case.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windlass_core::text::grouped;

use crate::desktop::Image;
use crate::text;

/// The end of the last private-use plane: icon fonts use the start of these planes, and nothing uses the end.
const MARKS: std::ops::RangeInclusive<u32> = 0x10_E000..=0x10_FFFD;

/// Maximum columns of a file name in a label.
const NAME_COLUMNS: usize = 40;

/// Content of a chip.
#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    Image(Image),
}

#[derive(Debug)]
struct Chip {
    content: Content,
    label: String,
    number: usize,
}

/// True if the character is a chip's mark. External text must not contain any: see [`harmless`].
pub(super) fn is_mark(letter: char) -> bool {
    MARKS.contains(&u32::from(letter))
}

/// Sanitises external text for the composer: one kind of line break, no control characters, no marks.
pub(super) fn harmless(foreign: &str) -> String {
    let mut harmless = text::plain(&foreign.replace("\r\n", "\n").replace('\r', "\n"));
    harmless.retain(|letter| !is_mark(letter));
    harmless
}

/// All chips that a text, its undo steps or the history may mention.
#[derive(Debug, Default)]
pub(super) struct Chips {
    by_mark: BTreeMap<char, Chip>,
}

impl Chips {
    /// Adds a chip to a text with these marks; `None` if all marks are in use.
    pub(super) fn add(&mut self, content: Content, beside: &str) -> Option<char> {
        let mark = MARKS
            .filter_map(char::from_u32)
            .find(|mark| !self.by_mark.contains_key(mark))?;
        let is_image = matches!(content, Content::Image(_));
        let alike = self
            .within(beside)
            .filter(|(_, chip)| chip.is_image() == is_image);
        let number = alike.map(|(_, chip)| chip.number).max().unwrap_or(0) + 1;
        let label = label(&content, number);
        let chip = Chip {
            content,
            label,
            number,
        };
        self.by_mark.insert(mark, chip);
        Some(mark)
    }

    /// Returns the pasted text of a mark.
    pub(super) fn pasted(&self, mark: char) -> Option<&str> {
        self.by_mark.get(&mark).and_then(Chip::pasted)
    }

    /// Returns the text with labels instead of marks.
    pub(super) fn show<'a>(&self, marked: &'a str) -> Cow<'a, str> {
        self.replace(marked, |chip| &chip.label)
    }

    /// Returns the text with pastes in full and images as labels.
    pub(super) fn open<'a>(&self, marked: &'a str) -> Cow<'a, str> {
        self.replace(marked, |chip| chip.pasted().unwrap_or(&chip.label))
    }

    /// Returns the images a text mentions, each once, ordered by number.
    pub(super) fn images(&self, marked: &str) -> Vec<Image> {
        let mut marks: Vec<_> = self.within(marked).collect();
        marks.sort_by_key(|(mark, chip)| (chip.number, *mark));
        marks.dedup_by_key(|(mark, _)| *mark);
        let images = marks.into_iter().filter_map(|(_, chip)| match &chip.content {
            Content::Image(image) => Some(image.clone()),
            Content::Text(_) => None,
        });
        images.collect()
    }

    /// Turns labels of known chips back into marks, in a text without marks such as one from an external
    /// editor.
    pub(super) fn recognise(&self, text: String, before: &str) -> String {
        self.within(before).fold(text, |text, (mark, chip)| {
            text.replacen(&chip.label, mark.encode_utf8(&mut [0; 4]), 1)
        })
    }

    /// Drops the chips that are not mentioned any more.
    pub(super) fn retain(&mut self, is_mentioned: impl Fn(char) -> bool) {
        self.by_mark.retain(|mark, _| is_mentioned(*mark));
    }

    fn within<'a>(&'a self, marked: &'a str) -> impl Iterator<Item = (char, &'a Chip)> {
        let marks = marked.chars().filter(|letter| is_mark(*letter));
        marks.filter_map(|mark| Some((mark, self.by_mark.get(&mark)?)))
    }

    fn replace<'a, 'b>(&'b self, marked: &'a str, by: impl Fn(&'b Chip) -> &'b str) -> Cow<'a, str> {
        if !marked.contains(is_mark) {
            return Cow::Borrowed(marked);
        }
        let mut out = String::with_capacity(marked.len());
        for letter in marked.chars() {
            match self.by_mark.get(&letter) {
                Some(chip) => out.push_str(by(chip)),
                None if is_mark(letter) => {}
                None => out.push(letter),
            }
        }
        Cow::Owned(out)
    }
}

impl Chip {
    fn is_image(&self) -> bool {
        matches!(self.content, Content::Image(_))
    }

    fn pasted(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Image(_) => None,
        }
    }
}

/// Returns the label of an image with this name in a text without marks; of several, the one with the lowest
/// number.
pub(super) fn image_label(text: &str, name: &str) -> Option<String> {
    let numbers = text.split("[image ").skip(1);
    let numbers = numbers.filter_map(|rest| rest.split_once(':')?.0.parse().ok());
    let labels = numbers.map(|number: usize| (number, labelled(name, number)));
    let there = labels.filter(|(_, label)| text.contains(label.as_str()));
    there.min_by_key(|(number, _)| *number).map(|(_, label)| label)
}

fn labelled(name: &str, number: usize) -> String {
    let name = text::cut(&text::one_line(&harmless(name)), NAME_COLUMNS);
    format!("[image {number}: {name}]")
}

fn label(content: &Content, number: usize) -> String {
    match content {
        Content::Image(image) => labelled(&image.name, number),
        Content::Text(text) => {
            let size = match text.lines().count() {
                lines if lines > super::PASTE_LINES => format!("{} lines", grouped(lines)),
                _ => format!("{} characters", grouped(text.chars().count())),
            };
            match number {
                1 => format!("[pasted {size}]"),
                _ => format!("[pasted {size} #{number}]"),
            }
        }
    }
}
