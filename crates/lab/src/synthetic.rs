//! Long generated sessions: work on a service, with facts planted among noise. The same seed gives the same
//! session.
//!
//! A session has about one turn per 25 calls. In each turn the user asks for something, and occasionally
//! states a rule that applies from then on; the agent maintains a todo list, looks around with `bash`,
//! `read_file` and `grep` (200 to 8,000 characters each, most of it irrelevant), and answers. The measured
//! facts are:
//!
//! - rules stated by the user: needed at the answer of each later turn;
//! - values that appeared in an output, two to five turns before the user asks about them. In half of the
//!   cases the agent repeated the value in its own words when it saw it; in half of them, independently, the
//!   call that showed it names its subject, and otherwise only the output itself does;
//! - the open item of the todo list: needed at the answer of the turn.
//!
//! Irrelevant values look the same: for every value that is asked about, there are several of the same kind
//! that are not.

mod facts;
mod noise;
mod random;

use std::sync::Arc;

use windlass_api::{Message, MessageId, Part, Role, SessionId};
use windlass_core::clock::Timestamp;
use windlass_core::message::ToolResult;
use windlass_core::provider::Prefix;
use windlass_core::script::call_part;

pub use self::facts::generate_series;
use self::noise::{Finding, Tool};
use self::random::Random;
use super::{Need, Session, Stretch};

/// Generates a session with this many tool calls.
pub fn generate(seed: u64, calls: usize) -> Session {
    let turns = (calls / CALLS_PER_TURN).max(MIN_TURNS);
    let mut draft = Draft::new(seed, turns);
    for turn in 0..turns {
        let until = calls * (turn + 1) / turns;
        draft.turn(turn, until);
    }
    Session {
        name: format!("synthetic-{seed}"),
        prefix: Arc::new(prefix()),
        messages: draft.messages,
        needs: draft.needs,
        stretches: draft.stretches,
    }
}

const CALLS_PER_TURN: usize = 25;
const MIN_TURNS: usize = 4;
/// Milliseconds between messages.
const PACE: u64 = 20_000;
const START: u64 = 1_760_000_000_000;
/// Number of values per turn that are asked about later.
const WANTED: usize = 2;
/// Number of values per turn that are never asked about.
const DECOYS: usize = 4;

const AREAS: [&str; 8] = [
    "the retry logic of the order queue",
    "the login page, which is slow for some users",
    "the nightly export",
    "the flaky test of the scheduler",
    "the search index",
    "the rate limits of the public interface",
    "the migration to the new schema",
    "the upload of large files",
];

/// Rules that apply once stated, each with a value.
const RULES: [(&str, &str); 6] = [
    ("never edit the generated file", "src/generated/schema_{}.rs"),
    ("every answer of the service has to come within", "{} ms"),
    ("the branch to work on is", "feature/windward-{}"),
    ("the staging database is", "db-stage-{}.internal"),
    ("the ticket for all of this is", "OPS-{}"),
    ("the release this has to be in is", "v3.{}.0"),
];

/// A value that the user will ask about.
struct Wanted {
    finding: Finding,
    due: usize,
}

struct Draft {
    random: Random,
    session: SessionId,
    turns: usize,
    messages: Vec<Arc<Message>>,
    needs: Vec<Need>,
    stretches: Vec<Stretch>,
    /// Rules the user has stated.
    rules: Vec<(String, String)>,
    wanted: Vec<Wanted>,
    calls: usize,
    /// A value the agent is about to repeat.
    noted: Option<String>,
}

impl Draft {
    fn new(seed: u64, turns: usize) -> Self {
        Self {
            random: Random::new(seed),
            session: SessionId::from(format!("synthetic-{seed}")),
            turns,
            messages: Vec::new(),
            needs: Vec::new(),
            stretches: Vec::new(),
            rules: Vec::new(),
            wanted: Vec::new(),
            calls: 0,
            noted: None,
        }
    }

    /// Generates a turn, from the user's message to the answer.
    fn turn(&mut self, turn: usize, until: usize) {
        let area = *self.random.pick(&AREAS);
        let (due, later): (Vec<Wanted>, Vec<Wanted>) = std::mem::take(&mut self.wanted)
            .into_iter()
            .partition(|wanted| wanted.due <= turn);
        self.wanted = later;
        self.say(turn, area, &due);
        for Wanted { finding, .. } in &due {
            self.needs.push(Need {
                at: self.messages.len(),
                text: finding.value.clone(),
                key: finding.name.clone(),
                is_said: false,
            });
        }
        let answers: Vec<String> = due.iter().map(|wanted| wanted.finding.answer()).collect();
        let item = self.todo(area, &answers.join(" "));
        let findings = self.findings(turn, until - self.calls);
        let start = self.messages.len();
        for finding in findings {
            self.step(area, finding);
        }
        if self.messages.len() > start {
            self.stretches.push(Stretch {
                scope: area.to_owned(),
                range: start..self.messages.len(),
            });
        }
        self.answer(turn, area, item);
    }

    /// Adds the user's message.
    fn say(&mut self, turn: usize, area: &str, due: &[Wanted]) {
        let mut text = format!("Please look at {area}. Find out what is wrong and mend it.");
        if turn.is_multiple_of(2)
            && let Some((rule, value)) = RULES.get(self.rules.len())
        {
            let value = value.replace("{}", &self.random.between(1_000, 9_999).to_string());
            text.push_str(&format!(" From now on: {rule} {value}."));
            self.rules.push(((*rule).to_owned(), value));
        }
        for Wanted { finding, .. } in due {
            text.push(' ');
            text.push_str(&finding.question());
        }
        self.push(Role::User, vec![Part::text(text)]);
    }

    /// Starts the turn's todo list. Returns the item that stays open.
    fn todo(&mut self, area: &str, said: &str) -> String {
        let item = format!("tell the team about {} afterwards", self.random.name());
        let input = serde_json::json!({ "items": [
            { "text": format!("look at {area}"), "status": "in_progress" },
            { "text": item, "status": "pending" },
        ]});
        let mut parts = Vec::new();
        if !said.is_empty() {
            parts.push(Part::text(said));
        }
        let id = format!("call_t{}", self.messages.len());
        parts.push(call_part(&id, "todo", &input.to_string()));
        self.push(Role::Assistant, parts);
        self.push(
            Role::Tool,
            vec![result(&id, "todo", "2 items, 2 open".to_owned())],
        );
        item
    }

    /// Returns the value planted in the output of each call of a turn, if any.
    fn findings(&mut self, turn: usize, calls: usize) -> Vec<Option<Finding>> {
        let mut all: Vec<Option<Finding>> = (0..calls).map(|_| None).collect();
        let can_ask = turn + 2 < self.turns;
        for number in 0..WANTED + DECOYS {
            let mut finding = Finding::new(&mut self.random);
            let place = self.random.below(calls.max(1));
            let is_wanted = number < WANTED && can_ask;
            let Some(slot) = all.get_mut(place).filter(|slot| slot.is_none()) else {
                continue;
            };
            if is_wanted {
                let due = (turn + 2 + self.random.below(4)).min(self.turns - 1);
                let finding = finding.clone();
                self.wanted.push(Wanted { finding, due });
            }
            finding.is_repeated = is_wanted && number % 2 == 0;
            finding.is_named = turn.is_multiple_of(2) == number.is_multiple_of(2);
            *slot = Some(finding);
        }
        all
    }

    /// Adds a reply with a call, and its result.
    fn step(&mut self, area: &str, finding: Option<Finding>) {
        self.calls += 1;
        let tool = Tool::any(&mut self.random);
        let id = format!("call_{}", self.calls);
        let mut parts = Vec::new();
        match self.noted.take() {
            Some(noted) => parts.push(Part::text(noted)),
            None if self.random.below(3) == 0 => {
                let text = format!("Next I look at {} for {area}.", self.random.name());
                parts.push(Part::text(text));
            }
            None => {}
        }
        let named = finding.as_ref().filter(|finding| finding.is_named);
        parts.push(call_part(&id, tool.name(), &tool.input(&mut self.random, named)));
        self.push(Role::Assistant, parts);
        let content = tool.output(&mut self.random, finding.as_ref());
        self.push(Role::Tool, vec![result(&id, tool.name(), content)]);
        self.noted = finding
            .filter(|finding| finding.is_repeated)
            .map(|finding| format!("Good to know: {}", finding.answer()));
    }

    /// Adds the answer, for which all rules are needed.
    fn answer(&mut self, turn: usize, area: &str, item: String) {
        let at = self.messages.len();
        for (rule, value) in &self.rules {
            self.needs.push(Need {
                at,
                text: value.clone(),
                key: rule.clone(),
                is_said: true,
            });
        }
        self.needs.push(Need {
            at,
            text: item.clone(),
            key: item,
            is_said: true,
        });
        let noted = self.noted.take().unwrap_or_default();
        let name = self.random.name();
        let text = format!(
            "{noted} Turn {}: {area} is mended; the cause was in {name}. The tests pass, and I changed two files.",
            turn + 1
        );
        self.push(Role::Assistant, vec![Part::text(text.trim())]);
    }

    fn push(&mut self, role: Role, parts: Vec<Part>) {
        let place = self.messages.len();
        let now = Timestamp(START + place as u64 * PACE);
        let mut message = Message::new(&self.session, role, parts, now);
        message.id = MessageId::from(format!("{}-{place}", self.session));
        self.messages.push(Arc::new(message));
    }
}

fn result(id: &str, tool: &str, content: String) -> Part {
    Part::ToolResult(ToolResult {
        call_id: id.into(),
        name: tool.to_owned(),
        content,
        metadata: None,
        is_error: false,
        images: Vec::new(),
    })
}

/// Returns a prefix as long as a system prompt with the descriptions of a dozen tools.
fn prefix() -> Prefix {
    const LENGTH: usize = 12_000;
    const LINE: &str =
        "You work in a folder with the tools you are given. Look before you change, and say what you did. ";
    Prefix {
        system: LINE.repeat(LENGTH / LINE.len()),
        ..Prefix::default()
    }
}
