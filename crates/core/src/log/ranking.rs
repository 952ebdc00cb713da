//! Order of sessions by the matches in them.

use std::collections::HashMap;
use std::hash::Hash;

/// Part of a match's score that the next best match of the session adds.
const NEXT: f64 = 0.25;

/// Matches of a session that are shown while there are others to show.
const SHOWN: usize = 3;

/// Orders sessions by their matches, which come with the best first. A session scores its best match, a quarter of the
/// next one, and so on: several matches help, and many weak ones do not outweigh a good one.
pub fn rank_sessions<K: Clone + Eq + Hash>(matches: impl IntoIterator<Item = (K, f64)>) -> Vec<(K, f64)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut sessions: Vec<(K, f64, f64)> = Vec::new();
    for (session, score) in matches {
        let place = *places.entry(session.clone()).or_insert(sessions.len());
        match sessions.get_mut(place) {
            Some((_, sum, share)) => {
                *sum += score * *share;
                *share *= NEXT;
            }
            None => sessions.push((session, score, NEXT)),
        }
    }
    // Equal sessions keep the order of their first matches.
    sessions.sort_by(|a, b| b.1.total_cmp(&a.1));
    sessions
        .into_iter()
        .map(|(session, sum, _)| (session, sum))
        .collect()
}

/// Returns at most `limit` matches, grouped by their sessions, the best session first. `of` returns session and score
/// of a match; matches come with the best first.
pub fn by_session<T, K: Clone + Eq + Hash>(
    mut matches: Vec<T>,
    limit: usize,
    of: impl Fn(&T) -> (K, f64),
) -> Vec<T> {
    let shown = if matches.len() <= limit { limit } else { SHOWN };
    let ranked = rank_sessions(matches.iter().map(&of)).into_iter();
    let order: HashMap<K, usize> = ranked.map(|(session, _)| session).zip(0..).collect();
    let place = |found: &T| order.get(&of(found).0).copied().unwrap_or_default();
    let mut counts = vec![0; order.len()];
    matches.sort_by_key(&place);
    matches.retain(|found| {
        let count = counts.get_mut(place(found));
        count.is_some_and(|count| std::mem::replace(count, *count + 1) < shown)
    });
    matches.truncate(limit);
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-14: a session with the best match and a good one is before one with many weak ones, and no session fills the
    /// list.
    #[test]
    fn sessions_are_ranked_by_their_best_matches() {
        let scores = [
            ("a", 9.0),
            ("b", 9.0),
            ("a", 8.0),
            ("c", 5.0),
            ("c", 5.0),
            ("c", 5.0),
            ("c", 5.0),
        ];
        let ranked = rank_sessions(scores);
        let order: Vec<&str> = ranked.iter().map(|(session, _)| *session).collect();
        assert_eq!(order, ["a", "b", "c"]);
        let of = |found: &(&'static str, f64)| *found;
        let shown = by_session(scores.to_vec(), 6, of);
        let shown: Vec<&str> = shown.iter().map(|(session, _)| *session).collect();
        assert_eq!(shown, ["a", "a", "b", "c", "c", "c"]);
        assert_eq!(by_session(scores.to_vec(), 7, of).len(), 7);
    }
}
