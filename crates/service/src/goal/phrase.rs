//! GOAL-2: detects that an answer states, in its own words, that the goal is done.
//!
//! A phrase counts if it is a whole sentence, or if the last sentence ends with it. Only prose counts: no code,
//! quotes, lists, tables and headings. Questions, conditions, negations and counts do not state completion.

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

/// Returns true if an answer states one of the phrases: as whole words, in any case.
pub(crate) fn says(answer: &str, phrases: &[String]) -> bool {
    let words = |phrase: &String| tokens(phrase).into_iter().map(|token| token.word).collect();
    let phrases: Vec<Vec<String>> = phrases.iter().map(words).collect();
    let paragraphs = prose(answer);
    paragraphs.iter().enumerate().any(|(index, paragraph)| {
        let tokens = tokens(paragraph);
        let sentences = tokens.split_inclusive(|token| token.tail.contains(['.', '!', '?', '…', '。', '!']));
        let sentences: Vec<&[Token]> = sentences.collect();
        let is_last = |place: usize| index + 1 == paragraphs.len() && place + 1 == sentences.len();
        let mut numbered = sentences.iter().enumerate();
        numbered.any(|(place, sentence)| {
            phrases
                .iter()
                .any(|phrase| states(sentence, phrase, is_last(place)))
        })
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

/// Returns true if a sentence is a phrase, or the last one ends with it.
fn states(sentence: &[Token], phrase: &[String], is_last: bool) -> bool {
    let is_question = sentence.last().is_some_and(|last| last.tail.contains('?'));
    let begin = sentence.len().checked_sub(phrase.len());
    let Some((before, end)) = begin.and_then(|begin| sentence.split_at_checked(begin)) else {
        return false;
    };
    // In scripts without spaces, a phrase is part of a longer word.
    let is_same = |(token, word): (&Token, &String)| {
        token.word == *word || (!word.is_ascii() && token.word.contains(word.as_str()))
    };
    let is_stated = !phrase.is_empty() && !is_question && end.iter().zip(phrase).all(is_same);
    is_stated && (before.is_empty() || (is_last && !is_doubted(before)))
}

/// Returns true if the words before a phrase change its meaning: a denial in its clause, a condition, a count.
fn is_doubted(before: &[Token]) -> bool {
    let ends_clause = |token: &Token| token.tail.contains([',', ';', ':', '—', '–']);
    let clause = before.split(ends_clause).next_back().unwrap_or_default();
    let is_doubt = |token: &Token| DOUBTS.contains(&token.word.as_str()) || token.word.ends_with("n't");
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|sign| sign.is_ascii_digit());
    let is_count = before.last().is_some_and(|last| is_number(&last.word));
    clause.iter().any(is_doubt) || is_count
}

/// Returns the paragraphs of an answer without code and quotations. Lists, tables and headings are empty ones.
fn prose(answer: &str) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut paragraphs = Vec::new();
    let mut goes_on = false;
    for line in answer.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        match (fence, fence_of(line)) {
            (Some(open), _) => {
                if line.starts_with(open) && line.trim_matches(['`', '~']).is_empty() {
                    fence = None;
                }
            }
            (None, Some(opened)) => {
                fence = Some(opened);
                goes_on = false;
                paragraphs.push(String::new());
            }
            (None, None) if line.is_empty() => goes_on = false,
            (None, None) if is_marked(line) => {
                goes_on = false;
                paragraphs.push(String::new());
            }
            // The rest of a list item.
            (None, None) if is_indented && !goes_on => {}
            (None, None) => match paragraphs.last_mut().filter(|_| goes_on) {
                Some(paragraph) => {
                    paragraph.push(' ');
                    paragraph.push_str(&unquoted(line));
                }
                None => {
                    paragraphs.push(unquoted(line));
                    goes_on = true;
                }
            },
        }
    }
    paragraphs
}

/// Returns true if a line is a quotation, a heading, or part of a list or a table.
fn is_marked(line: &str) -> bool {
    let numbered = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let is_item = |rest: &str| rest.starts_with(['.', ')']) && rest.len() < line.len();
    let bullet = ["- ", "* ", "+ ", "• "].iter().any(|sign| line.starts_with(sign));
    line.starts_with(['>', '#', '|']) || line.contains(" | ") || bullet || is_item(numbered)
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
            "# Result\n\nAll tests pass.\nDone.",
            "No errors left, task complete.",
            "Done. It took a while:\n\n- one\n- two",
            "- one\n- two\n\nEverything that you listed\nis done.",
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
            "# Done\n\nAll tests pass",
            "- [x] done",
            "- one\n  done",
            "1. Done.",
            "| state | done |",
            "test | state\n--- | ---\na | done",
            "1 pending, 1 completed",
            "The first part is done. The second part is next.",
            "I completed the parser and go on with the printer.",
            "The parser is done.\n\n- the printer is next",
            "The parser is done:\n\n```\nls\n```",
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
