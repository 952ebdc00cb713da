//! Full-text search: words and stems of our own, ranked by BM25 as in the other store, so that both find the same.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use deadpool_postgres::GenericClient;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use windlass_core::id::SessionId;
use windlass_core::log::{Found, UserName, by_session};
use windlass_core::words::{query_words, related, stem, words};

use super::failure::Fault;
use super::sql::{number, only, row, rows, signed};

/// Weight of repeated words, and of the length of a text.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Number of words of a snippet.
const SNIPPET: usize = 16;

/// Matches that are read for each one that is shown, so that sessions with several of them are recognized.
const WIDER: usize = 5;

/// Maximum position of a word, and maximum number of its positions, that a `tsvector` keeps.
const MAX_POSITION: usize = 16_383;
const MAX_POSITIONS: usize = 255;

/// Words of a text, as the index takes them.
pub(super) struct Lexemes {
    /// Text of a `tsvector`.
    pub(super) vector: String,
    /// Number of words.
    pub(super) length: i64,
}

impl Lexemes {
    pub(super) fn of(text: &str) -> Self {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut length = 0;
        for (place, word) in words(text).into_iter().enumerate() {
            let lexeme = lexeme(&word);
            // A word of nothing but accents.
            if lexeme.is_empty() {
                continue;
            }
            let known = places.entry(lexeme).or_default();
            if known.len() < MAX_POSITIONS {
                // Equal positions count once, so that those beyond the maximum count as one.
                known.push((place + 1).min(MAX_POSITION));
            }
            length += 1;
        }
        let mut vector = String::new();
        for (word, places) in places {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            // Words contain letters and digits only, so nothing has to be quoted inside.
            let _ = write!(vector, "'{word}':{} ", places.join(","));
        }
        Self { vector, length }
    }
}

/// Returns a word as it is indexed: its stem, without accents.
fn lexeme(word: &str) -> String {
    stem(&plain(word))
}

fn plain(word: &str) -> String {
    match word.is_ascii() {
        true => word.to_owned(),
        false => word.nfd().filter(|sign| !is_combining_mark(*sign)).collect(),
    }
}

/// Words of a question.
struct Question {
    lexemes: Vec<String>,
    /// Beginning of the last word, which may be incomplete.
    start: String,
}

impl Question {
    fn of(question: &str) -> Option<Self> {
        let words: Vec<String> = query_words(question).iter().map(|word| plain(word)).collect();
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let start = words.last()?.clone();
        let mut lexemes: Vec<String> = Vec::new();
        for lexeme in words.iter().map(|word| stem(word)) {
            let others = related(&lexeme).iter().map(|word| stem(word));
            for word in std::iter::once(lexeme.clone()).chain(others) {
                if !lexemes.contains(&word) {
                    lexemes.push(word);
                }
            }
        }
        Some(Self { lexemes, start })
    }

    /// Returns the question as a `tsquery`: any of the words may occur.
    fn query(&self) -> String {
        let words = self.lexemes.iter().map(|word| format!("'{word}'"));
        let start = std::iter::once(format!("'{}':*", self.start));
        words.chain(start).collect::<Vec<_>>().join(" | ")
    }

    /// Returns the terms of the question that a lexeme matches. The last one is the incomplete word.
    fn terms(&self, lexeme: &str) -> impl Iterator<Item = usize> {
        let whole = self.lexemes.iter().position(|word| word == lexeme);
        let begun = lexeme.starts_with(&self.start).then_some(self.lexemes.len());
        whole.into_iter().chain(begun)
    }
}

/// A text that contains words of a question.
struct Hit {
    session: String,
    seq: i64,
    length: i64,
    /// Number of occurrences of each term.
    counts: HashMap<usize, f64>,
}

/// Returns the texts that match a question best.
pub(super) async fn search(
    client: &impl GenericClient,
    question: &str,
    user: Option<&UserName>,
    limit: usize,
) -> Result<Vec<Found>, Fault> {
    let Some(question) = Question::of(question) else {
        return Ok(Vec::new());
    };
    let all = only(
        client,
        "SELECT count(*), coalesce(sum(length), 0)::bigint FROM said",
        &[],
    )
    .await?;
    let sql = "SELECT session, seq, length, \
        ARRAY(SELECT lexeme FROM unnest(words) WHERE lexeme = ANY($2) OR starts_with(lexeme, $3) ORDER BY lexeme), \
        ARRAY(SELECT coalesce(array_length(positions, 1), 1)::bigint FROM unnest(words) \
        WHERE lexeme = ANY($2) OR starts_with(lexeme, $3) ORDER BY lexeme) \
        FROM said WHERE words @@ $1::text::tsquery AND ($4::text IS NULL OR EXISTS \
        (SELECT 1 FROM session WHERE session.id = said.session AND session.user_name = $4))";
    let found = rows(
        client,
        sql,
        &[
            &question.query(),
            &question.lexemes,
            &question.start,
            &user.map(UserName::as_str),
        ],
    )
    .await?;
    let hits = found.iter().map(|row| {
        let (lexemes, counts): (Vec<&str>, Vec<i64>) = (row.get(3), row.get(4));
        let mut terms: HashMap<usize, f64> = HashMap::new();
        for (lexeme, count) in lexemes.into_iter().zip(counts) {
            for term in question.terms(lexeme) {
                *terms.entry(term).or_default() += real(count);
            }
        }
        Hit {
            session: row.get(0),
            seq: row.get(1),
            length: row.get(2),
            counts: terms,
        }
    });
    let ranked = ranked(hits.collect(), number(&all, 0), number(&all, 1));
    let ranked = ranked.into_iter().take(limit.saturating_mul(WIDER)).collect();
    let ranked = by_session(ranked, limit, |(score, hit): &(f64, Hit)| {
        (hit.session.clone(), *score)
    });
    let mut results = Vec::new();
    for (_, hit) in ranked {
        let sql = "SELECT coalesce(session.name, session.title, ''), said.text FROM said JOIN session ON session.id = said.session \
            WHERE said.session = $1 AND said.seq = $2";
        let Some(said) = row(client, sql, &[&hit.session, &hit.seq]).await? else {
            continue;
        };
        results.push(Found {
            session: SessionId::from(hit.session),
            title: said.get(0),
            seq: hit.seq.unsigned_abs(),
            snippet: snippet(said.get(1), &question),
        });
    }
    Ok(results)
}

/// Orders texts by BM25, best first. Every text with a term is among them, so the terms are counted here.
fn ranked(hits: Vec<Hit>, texts: u64, length: u64) -> Vec<(f64, Hit)> {
    let texts = real(signed(texts)).max(1.0);
    let average = (real(signed(length)) / texts).max(1.0);
    let mut with: HashMap<usize, f64> = HashMap::new();
    for hit in &hits {
        for term in hit.counts.keys() {
            *with.entry(*term).or_default() += 1.0;
        }
    }
    let weight = |term: &usize| {
        let with = with.get(term).copied().unwrap_or_default();
        ((texts - with + 0.5) / (with + 0.5)).ln().max(1e-6)
    };
    let score = |hit: &Hit| -> f64 {
        let size = K1 * (1.0 - B + B * real(hit.length) / average);
        let terms = hit.counts.iter();
        terms
            .map(|(term, count)| weight(term) * count * (K1 + 1.0) / (count + size))
            .sum()
    };
    let mut scored: Vec<(f64, Hit)> = hits.into_iter().map(|hit| (score(&hit), hit)).collect();
    scored.sort_by(|(left, a), (right, b)| {
        let by_score = right.partial_cmp(left).unwrap_or(Ordering::Equal);
        by_score.then_with(|| (&a.session, a.seq).cmp(&(&b.session, b.seq)))
    });
    scored
}

/// Converts a count. None of ours is too large.
#[allow(clippy::cast_precision_loss)]
pub(super) fn real(number: i64) -> f64 {
    number as f64
}

/// Returns the part of a text with most words of the question, each between `[` and `]`.
fn snippet(text: &str, question: &Question) -> String {
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let mut start = None;
    let ends = text.char_indices().map(Some).chain(std::iter::once(None));
    for sign in ends {
        let (place, is_word) = sign.map_or((text.len(), false), |(place, sign)| {
            (place, sign.is_alphanumeric())
        });
        match (start, is_word) {
            (None, true) => start = Some(place),
            (Some(begin), false) => {
                let run = text.get(begin..place).unwrap_or_default();
                let fits = words(run).iter().any(|word| {
                    let lexeme = lexeme(word);
                    question.terms(&lexeme).next().is_some() || plain(word).starts_with(&question.start)
                });
                runs.push((begin, place, fits));
                start = None;
            }
            _ => {}
        }
    }
    let windows = runs.len().saturating_sub(SNIPPET) + 1;
    let count = |from: usize| runs.iter().skip(from).take(SNIPPET).filter(|run| run.2).count();
    // The first of the best.
    let best = (0..windows)
        .rev()
        .max_by_key(|from| count(*from))
        .unwrap_or_default();
    let shown: Vec<&(usize, usize, bool)> = runs.iter().skip(best).take(SNIPPET).collect();
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
        return String::new();
    };
    let mut snippet = String::new();
    let mut at = if best == 0 { 0 } else { first.0 };
    if best > 0 {
        snippet.push('…');
    }
    for (begin, end, fits) in &shown {
        snippet.push_str(text.get(at..*begin).unwrap_or_default());
        let word = text.get(*begin..*end).unwrap_or_default();
        match fits {
            true => drop(write!(snippet, "[{word}]")),
            false => snippet.push_str(word),
        }
        at = *end;
    }
    if best + SNIPPET < runs.len() {
        snippet.push('…');
    } else {
        snippet.push_str(text.get(last.1..).unwrap_or_default());
    }
    snippet
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-14, DIST-2: words are indexed as stems without accents, with their positions.
    #[test]
    fn texts_become_lexemes() {
        let lexemes = Lexemes::of("Retries: the Überlauf retried, 設定を");
        assert_eq!(
            lexemes.vector,
            "'retri':1,4 'the':2 'uberlauf':3 '定を':6 '設定':5 "
        );
        assert_eq!(lexemes.length, 6);
    }

    /// SES-14, DIST-2: a snippet marks the words that were found, the incomplete one as well.
    #[test]
    fn snippets_mark_words() {
        let question = Question::of("ring buff").unwrap();
        assert_eq!(question.query(), "'ring' | 'buff' | 'buff':*");
        let text = "Where does the ring buffer end?";
        assert_eq!(snippet(text, &question), "Where does the [ring] [buffer] end?");
        let long = format!("{} ring {}", "word ".repeat(40), "word ".repeat(40));
        let short = snippet(&long, &question);
        assert!(
            short.starts_with('…') && short.ends_with('…') && short.contains("[ring]"),
            "{short}"
        );
        assert!(Question::of("?!").is_none());
    }

    /// SES-14, DIST-2: rare words count more than common ones, and short texts more than long ones.
    #[test]
    fn rare_words_come_first() {
        let hit = |session: &str, length, terms: &[usize]| Hit {
            session: session.to_owned(),
            seq: 1,
            length,
            counts: terms.iter().map(|term| (*term, 1.0)).collect(),
        };
        let mut hits: Vec<Hit> = (0..10)
            .map(|number| hit(&format!("common{number}"), 10, &[0]))
            .collect();
        hits.push(hit("long", 15, &[1]));
        hits.push(hit("short", 5, &[1]));
        let order: Vec<String> = ranked(hits, 100, 1000)
            .into_iter()
            .map(|(_, hit)| hit.session)
            .collect();
        assert_eq!(order[..2], ["short", "long"]);
    }
}
