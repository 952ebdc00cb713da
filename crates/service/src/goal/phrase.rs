//! GOAL-2: detects that an answer states, in its own words, that the goal is done.
//!
//! Text in code or quotes does not count as the answer's own. Questions, conditions and negations do not
//! state completion.

/// Maximum length of a quotation, in characters. An unmatched quotation mark must not cause a search through
/// the whole answer.
const LONGEST_QUOTE: usize = 1_000;

/// Opening and closing marks of quotes and inline code.
const QUOTES: &[(char, char)] = &[
    ('`', '`'),
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('\'', '\''),
    ('‘', '’'),
];

/// Words that, before a phrase, mean that it does not state completion.
const DOUBTS: &[&str] = &[
    "not",
    "never",
    "no",
    "nothing",
    "cannot",
    "until",
    "unless",
    "before",
    "after",
    "once",
    "when",
    "if",
    "be",
    "almost",
    "nearly",
    "partly",
    "partially",
    "half",
];

/// Returns true if an answer states one of the phrases: as whole words, in any case, outside code and quotes.
pub(crate) fn says(answer: &str, phrases: &[String]) -> bool {
    let words = |phrase: &String| tokens(phrase).into_iter().map(|token| token.word).collect();
    let phrases: Vec<Vec<String>> = phrases.iter().map(words).collect();
    prose(answer).iter().any(|line| {
        let tokens = tokens(line);
        let mut sentences = tokens.split_inclusive(|token| token.tail.contains(['.', '!', '?', '…']));
        sentences.any(|sentence| states(sentence, &phrases))
    })
}

/// A word and the punctuation after it.
struct Token {
    /// The word in lowercase.
    word: String,
    tail: String,
}

fn tokens(line: &str) -> Vec<Token> {
    let is_mark = |sign: char| !sign.is_alphanumeric();
    let token = |text: &str| Token {
        word: text.trim_matches(is_mark).to_lowercase().replace('’', "'"),
        tail: text.chars().rev().take_while(|sign| is_mark(*sign)).collect(),
    };
    line.split_whitespace().map(token).collect()
}

/// Returns true if a clause of a sentence states a phrase.
fn states(sentence: &[Token], phrases: &[Vec<String>]) -> bool {
    let is_question = sentence.last().is_some_and(|last| last.tail.contains('?'));
    let mut clauses = sentence.split_inclusive(|token| token.tail.contains([',', ';', ':', '—', '–']));
    !is_question && clauses.any(|clause| phrases.iter().any(|phrase| has(clause, phrase)))
}

fn has(clause: &[Token], phrase: &[String]) -> bool {
    if phrase.is_empty() {
        return false;
    }
    // In scripts without spaces, a phrase is part of a longer word.
    let is_same = |(token, word): (&Token, &String)| {
        token.word == *word || (!word.is_ascii() && token.word.contains(word.as_str()))
    };
    let is_doubt = |token: &Token| DOUBTS.contains(&token.word.as_str()) || token.word.ends_with("n't");
    let undoubted = clause.iter().position(is_doubt).unwrap_or(clause.len());
    let mut places = clause.windows(phrase.len()).take(undoubted);
    places.any(|window| window.iter().zip(phrase).all(is_same))
}

/// Returns the lines of an answer without code and quotations.
fn prose(answer: &str) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in answer.lines() {
        let line = line.trim();
        match (fence, fence_of(line)) {
            (Some(open), _) => {
                if line.starts_with(open) && line.trim_matches(['`', '~']).is_empty() {
                    fence = None;
                }
            }
            (None, Some(opened)) => fence = Some(opened),
            (None, None) if line.starts_with('>') => {}
            (None, None) => lines.push(unquoted(line)),
        }
    }
    lines
}

/// Returns the fence that a line opens.
fn fence_of(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(['`', '~']);
    let fence = line.strip_suffix(rest)?;
    let opens = (fence.starts_with("```") && !rest.contains('`')) || fence.starts_with("~~~");
    opens.then_some(fence)
}

fn unquoted(line: &str) -> String {
    let signs: Vec<char> = line.replace("```", "`").replace("``", "`").chars().collect();
    let mut kept = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(sign) = signs.get(at) {
        match closed_at(&signs, at) {
            Some(close) => at = close,
            None => kept.push(*sign),
        }
        at += 1;
    }
    kept
}

/// Returns the end of the quotation that starts here, if there is one.
fn closed_at(signs: &[char], open: usize) -> Option<usize> {
    let sign = signs.get(open)?;
    let (_, closing) = QUOTES.iter().find(|(opening, _)| opening == sign)?;
    // The same sign occurs inside words.
    let is_apostrophe = matches!(sign, '\'' | '‘');
    let is_letter = |at: usize| signs.get(at).is_some_and(|sign| sign.is_alphanumeric());
    if is_apostrophe && open.checked_sub(1).is_some_and(is_letter) {
        return None;
    }
    let inside = signs.iter().enumerate().skip(open + 1).take(LONGEST_QUOTE);
    let mut closes = inside.filter(|(at, sign)| *sign == closing && !(is_apostrophe && is_letter(at + 1)));
    closes.next().map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_phrases() -> Vec<String> {
        ["task complete", "done", "finished", "completed"]
            .map(str::to_owned)
            .into()
    }

    /// GOAL-2: an answer that states one of the phrases in its own words completes a goal, whatever
    /// punctuation surrounds it.
    #[test]
    fn phrases_are_found() {
        for answer in [
            "Done.",
            "**Done!**",
            "Everything is DONE",
            "I fixed it.\n\nTask complete.",
            "# Done\n\nAll tests pass",
            "- [x] done",
            "No errors left, task complete.",
            "It isn't pretty. It's finished.",
            "```\nx\n```\ndone",
            "~~~\n```\n~~~\ndone",
            "I ran `make`, and it is done.",
            "The user's tests' names are fixed — done",
            "What is left? Nothing: done.",
            "a 6\" pipe is finished",
        ] {
            assert!(says(answer, &default_phrases()), "{answer}");
        }
        assert!(says("好的,任务完成了。", &["任务完成".to_owned()]));
    }

    /// GOAL-2: phrases in code, quotes, other words, questions and conditions complete nothing.
    #[test]
    fn what_only_looks_like_a_phrase_is_left() {
        for answer in [
            "",
            "I fixed it.",
            "`done`",
            "``done``",
            "```done```",
            "```sh\necho done\n```",
            "```\ndone",
            "~~~\n```\ndone\n~~~",
            "> done",
            "It prints \"done\".",
            "It prints 'done' now.",
            "It prints “task complete”.",
            "Sie sagt „done“.",
            "It is called «done».",
            "the names are ‘done’",
            "I moved it to done.txt",
            "It is undone, abandoned and well-done",
            "task_complete",
            "The task is not complete",
            "It is not done yet.",
            "That isn't finished.",
            "That isn’t finished.",
            "Shall I call it done?",
            "Is it done, or not?",
            "When it is finished, call me.",
            "Three things remain to be done.",
            "Once completed, it is fast.",
        ] {
            assert!(!says(answer, &default_phrases()), "{answer}");
        }
        assert!(!says("Done.", &[]));
        assert!(!says("Done.", &[String::new(), "  ".to_owned(), "…".to_owned()]));
    }

    /// GOAL-2: unmatched quotation marks do not make a long answer slow.
    #[test]
    fn long_answers_are_read_fast() {
        let answer = "'a „ ".repeat(10_000);
        assert!(!says(&answer, &default_phrases()));
        assert!(says(&format!("{answer}. done"), &default_phrases()));
    }
}
