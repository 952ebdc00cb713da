//! Grammar of normal mode: parses keys into commands.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum count; a larger one is a slip of the finger and would only take time.
const MOST: usize = 999;

/// Result of parsing the keys typed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    Unfinished,
    Wrong,
    Command(Command),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) count: Option<usize>,
    pub(super) act: Act,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Move(Motion),
    Operate(Operator, Target),
    Insert(Entry),
    /// Pastes the text that was last deleted or yanked.
    Put(Side),
    /// Replaces characters by this one.
    Replace(char),
    SwapCase,
    Join,
    Undo,
    /// Repeats the last change.
    Repeat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
}

/// Text an operator applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Lines,
    Motion(Motion),
    Object(Extent, Object),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    WordNext(Words),
    WordBack(Words),
    WordEnd(Words),
    LineStart,
    FirstLetter,
    LineEnd,
    Top,
    Bottom,
    Find(Find),
    FindAgain,
    FindBack,
}

/// Word separators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// White space and punctuation.
    Small,
    /// White space only.
    Big,
}

/// A character search in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) letter: char,
    pub(super) is_forward: bool,
    /// True to stop next to the character instead of on it.
    pub(super) is_till: bool,
}

/// Extent of a text object: with or without its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Inner,
    Around,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Word(Words),
    Quoted(char),
    Bracketed(char, char),
}

/// Position where insert mode starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Here,
    After,
    FirstLetter,
    LineEnd,
    LineBelow,
    LineAbove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// Parses the keys typed so far.
pub(super) fn parse(keys: &str) -> Parsed {
    match command(&mut keys.chars().peekable()) {
        Ok(command) => Parsed::Command(command),
        Err(Stop::Unfinished) => Parsed::Unfinished,
        Err(Stop::Wrong) => Parsed::Wrong,
    }
}

impl Act {
    /// True if the command can be repeated.
    pub(super) fn is_change(self) -> bool {
        !matches!(
            self,
            Self::Move(_) | Self::Undo | Self::Repeat | Self::Operate(Operator::Yank, _)
        )
    }
}

enum Stop {
    Unfinished,
    Wrong,
}

type KeyBindings<'a> = Peekable<Chars<'a>>;

fn command(keys: &mut KeyBindings<'_>) -> Result<Command, Stop> {
    let count = number(keys);
    let letter = keys.next().ok_or(Stop::Unfinished)?;
    let whole = |operator, motion| Act::Operate(operator, Target::Motion(motion));
    let act = match letter {
        'd' => return operation(keys, 'd', Operator::Delete, count),
        'c' => return operation(keys, 'c', Operator::Change, count),
        'y' => return operation(keys, 'y', Operator::Yank, count),
        'x' => whole(Operator::Delete, Motion::Right),
        'X' => whole(Operator::Delete, Motion::Left),
        'D' => whole(Operator::Delete, Motion::LineEnd),
        'C' => whole(Operator::Change, Motion::LineEnd),
        's' => whole(Operator::Change, Motion::Right),
        'S' => Act::Operate(Operator::Change, Target::Lines),
        'Y' => Act::Operate(Operator::Yank, Target::Lines),
        'i' => Act::Insert(Entry::Here),
        'a' => Act::Insert(Entry::After),
        'I' => Act::Insert(Entry::FirstLetter),
        'A' => Act::Insert(Entry::LineEnd),
        'o' => Act::Insert(Entry::LineBelow),
        'O' => Act::Insert(Entry::LineAbove),
        'p' => Act::Put(Side::After),
        'P' => Act::Put(Side::Before),
        'r' => Act::Replace(keys.next().ok_or(Stop::Unfinished)?),
        '~' => Act::SwapCase,
        'J' => Act::Join,
        'u' => Act::Undo,
        '.' => Act::Repeat,
        letter => Act::Move(motion(letter, keys)?),
    };
    Ok(Command { count, act })
}

/// Parses the target of an operator. A count before it and a count after it multiply.
fn operation(
    keys: &mut KeyBindings<'_>,
    own: char,
    operator: Operator,
    count: Option<usize>,
) -> Result<Command, Stop> {
    let second = number(keys);
    let count = match (count, second) {
        (None, None) => None,
        (first, second) => Some((first.unwrap_or(1) * second.unwrap_or(1)).min(MOST)),
    };
    let target = match keys.next().ok_or(Stop::Unfinished)? {
        letter if letter == own => Target::Lines,
        'i' => Target::Object(Extent::Inner, object(keys)?),
        'a' => Target::Object(Extent::Around, object(keys)?),
        letter => Target::Motion(motion(letter, keys)?),
    };
    let act = Act::Operate(operator, target);
    Ok(Command { count, act })
}

fn motion(letter: char, keys: &mut KeyBindings<'_>) -> Result<Motion, Stop> {
    Ok(match letter {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'k' => Motion::Up,
        'j' => Motion::Down,
        'w' => Motion::WordNext(Words::Small),
        'W' => Motion::WordNext(Words::Big),
        'b' => Motion::WordBack(Words::Small),
        'B' => Motion::WordBack(Words::Big),
        'e' => Motion::WordEnd(Words::Small),
        'E' => Motion::WordEnd(Words::Big),
        '0' => Motion::LineStart,
        '^' => Motion::FirstLetter,
        '$' => Motion::LineEnd,
        'G' => Motion::Bottom,
        'g' => match keys.next().ok_or(Stop::Unfinished)? {
            'g' => Motion::Top,
            _ => return Err(Stop::Wrong),
        },
        'f' | 'F' | 't' | 'T' => Motion::Find(Find {
            letter: keys.next().ok_or(Stop::Unfinished)?,
            is_forward: letter.is_lowercase(),
            is_till: letter.eq_ignore_ascii_case(&'t'),
        }),
        ';' => Motion::FindAgain,
        ',' => Motion::FindBack,
        _ => return Err(Stop::Wrong),
    })
}

fn object(keys: &mut KeyBindings<'_>) -> Result<Object, Stop> {
    Ok(match keys.next().ok_or(Stop::Unfinished)? {
        'w' => Object::Word(Words::Small),
        'W' => Object::Word(Words::Big),
        quote @ ('"' | '\'' | '`') => Object::Quoted(quote),
        '(' | ')' | 'b' => Object::Bracketed('(', ')'),
        '[' | ']' => Object::Bracketed('[', ']'),
        '{' | '}' | 'B' => Object::Bracketed('{', '}'),
        '<' | '>' => Object::Bracketed('<', '>'),
        _ => return Err(Stop::Wrong),
    })
}

/// Parses a count. A leading zero is a movement instead.
fn number(keys: &mut KeyBindings<'_>) -> Option<usize> {
    keys.peek().filter(|letter| **letter != '0')?;
    let mut count = None;
    while let Some(digit) = keys.peek().and_then(|letter| letter.to_digit(10)) {
        keys.next();
        let digit = usize::try_from(digit).unwrap_or(0);
        count = Some((count.unwrap_or(0) * 10 + digit).min(MOST));
    }
    count
}
