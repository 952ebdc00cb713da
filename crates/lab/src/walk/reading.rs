//! What happens when a fact is needed: it is in sight, or it is looked for, and found or not.

use std::collections::HashSet;

use super::Walk;
use super::measure::references;
use crate::Need;

impl Walk<'_> {
    /// Looks for a fact in the request, then under the references in it. The calls of one look are in one reply; what they
    /// show stays in the conversation, and another request follows.
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

    /// Where an agent would look that does not know where the fact is: under notes of calls that name what it looks for, then
    /// under summaries, then everywhere.
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

    /// The calls in the conversation whose arguments have this text.
    fn calls_with(&self, text: &str) -> HashSet<String> {
        let calls = self.history.iter().flat_map(|message| message.calls());
        let with = calls.filter(|call| call.input.contains(text));
        with.map(|call| call.id.to_string()).collect()
    }

    /// Whether any reference in sight leads to the fact, also by what it shows.
    fn is_readable(&self, need: &Need) -> bool {
        let mut left = self.meter.references();
        let mut seen = HashSet::new();
        let sources = self.sources(need);
        while let Some(reference) = left.pop() {
            // To read all notes takes long, and only these can have it.
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

    /// The calls whose output had the fact.
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
