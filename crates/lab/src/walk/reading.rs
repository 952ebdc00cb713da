//! Search for a needed fact: it is in sight, or the agent searches for it and finds it or not.

use std::collections::HashSet;

use super::Walk;
use super::measure::references;
use crate::Need;

impl Walk<'_> {
    /// Searches for a fact in the request, then behind its references. The calls of one search step are in
    /// one reply; their results stay in the conversation, and another request follows.
    pub(super) async fn need(&mut self, need: &Need) {
        let (is_in_sight, facts) = (self.meter.has(&need.text), &mut self.outcome.facts);
        if need.is_said {
            facts.said += 1;
            facts.said_in_sight += u64::from(is_in_sight);
            return;
        }
        facts.shown += 1;
        if is_in_sight {
            facts.shown_in_sight += 1;
            facts.readable += 1;
            return;
        }
        self.outcome.facts.readable += u64::from(self.is_readable(need));
        for references in self.guesses(need) {
            self.look(need, &references).await;
            if self.meter.has(&need.text) {
                self.outcome.facts.found += 1;
                return;
            }
        }
    }

    /// Returns the places where an agent would search without knowing where the fact is: notes of calls that
    /// name the subject, then summaries, then everywhere.
    fn guesses(&self, need: &Need) -> Vec<Vec<String>> {
        let mut seen = HashSet::new();
        let all: Vec<String> = self.meter.references().into_iter().rev().collect();
        let all: Vec<String> = all.into_iter().filter(|one| seen.insert(one.clone())).collect();
        let (summaries, notes): (Vec<String>, Vec<String>) = all.into_iter().partition(|one| is_summary(one));
        let named = self.calls_with(&need.key);
        let likely = notes.into_iter().filter(|note| named.contains(note)).collect();
        let everywhere = vec![String::new()];
        let looks = [likely, summaries, everywhere].into_iter();
        looks.filter(|references| !references.is_empty()).collect()
    }

    /// Returns the calls in the conversation whose arguments contain this text.
    fn calls_with(&self, text: &str) -> HashSet<String> {
        let calls = self.history.iter().flat_map(|message| message.calls());
        let with = calls.filter(|call| call.input.contains(text));
        with.map(|call| call.id.to_string()).collect()
    }

    /// Returns true if any reference in sight leads to the fact, directly or through further references.
    fn is_readable(&self, need: &Need) -> bool {
        let mut left = self.meter.references();
        let mut seen = HashSet::new();
        let sources = self.sources(need);
        while let Some(reference) = left.pop() {
            // Reading all notes takes long, and only these can contain the fact.
            let can_have = is_summary(&reference) || sources.contains(reference.as_str());
            if !can_have || !seen.insert(reference.clone()) {
                continue;
            }
            let Some(shown) = self.rig.log.whole(&reference) else {
                continue;
            };
            if shown.contains(&need.text) {
                return true;
            }
            left.extend(references(&shown));
        }
        false
    }

    /// Returns the calls whose output contained the fact.
    fn sources(&self, need: &Need) -> HashSet<&str> {
        let said = self.session.messages.iter().take(need.at);
        let results = said.flat_map(|message| message.results());
        let has_it = results.filter(|result| result.content.contains(&need.text));
        has_it.map(|result| result.call_id.as_str()).collect()
    }

    async fn look(&mut self, need: &Need, references: &[String]) {
        self.outcome.facts.recalls += references.len() as u64;
        let input = |reference: &String| match reference.as_str() {
            "" => serde_json::json!({ "grep": need.key }).to_string(),
            reference => serde_json::json!({ "ref": reference, "grep": need.key }).to_string(),
        };
        let calls = self.calls("recall", references.iter().map(input));
        let shown = references.iter().map(|reference| {
            let shown = self.rig.log.recall(reference, &need.key);
            shown.unwrap_or_else(|| format!("No line has `{}`.", need.key))
        });
        let answers: Vec<(_, String)> = calls.into_iter().zip(shown).collect();
        self.answer("recall", answers);
        self.ask(need.at).await;
    }
}

fn is_summary(reference: &str) -> bool {
    reference.starts_with("summary-")
}
