//! What happens when a fact is needed: it is in sight, or it is read back, or it is lost.

use std::collections::{HashSet, VecDeque};

use super::Walk;
use super::measure::references;
use crate::lab::Need;

/// How many references an agent looks under before it gives up.
const MOST_RECALLS: usize = 12;

impl Walk<'_> {
    /// Looks for a fact in the request, then under the references in it. Each look is a call of `recall`: what it shows
    /// stays in the conversation, and another request follows.
    pub(super) async fn need(&mut self, need: &Need) {
        self.outcome.facts.needed += 1;
        if self.meter.has(&need.text) {
            self.outcome.facts.in_sight += 1;
            return;
        }
        let mut left: VecDeque<String> = self.in_order(need).into();
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(reference) = left.pop_front() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            if seen.len() > MOST_RECALLS {
                return;
            }
            let shown = self.look(need, &reference).await;
            if self.meter.has(&need.text) {
                self.outcome.facts.read_back += 1;
                return;
            }
            // What was left out can itself name what was left out before.
            left.extend(references(&shown));
        }
    }

    /// The references in sight, in the order in which they are tried. The call whose output has the fact is still in sight
    /// where a note is, and says which note it is: that one comes first. Of a summary only its age is known.
    fn in_order(&self, need: &Need) -> Vec<String> {
        let all = self.meter.references();
        let sources = self.sources(need);
        let note = all.iter().find(|reference| sources.contains(reference.as_str()));
        let summaries = all
            .iter()
            .rev()
            .filter(|reference| reference.starts_with("summary-"));
        note.into_iter().chain(summaries).cloned().collect()
    }

    /// The calls whose output had the fact.
    fn sources(&self, need: &Need) -> HashSet<&str> {
        let said = self.session.messages.iter().take(need.at);
        let results = said.flat_map(|message| message.results());
        let has_it = results.filter(|result| result.content.contains(&need.text));
        has_it.map(|result| result.call_id.as_str()).collect()
    }

    async fn look(&mut self, need: &Need, reference: &str) -> String {
        self.outcome.facts.recalls += 1;
        let shown = self.rig.log.recall(reference, &need.key);
        let shown = shown.unwrap_or_else(|| format!("No line has `{}`.", need.key));
        let input = serde_json::json!({ "ref": reference, "grep": need.key });
        let call = self.call("recall", input.to_string());
        self.answer(&call, shown.clone());
        self.ask(need.at).await;
        shown
    }
}
