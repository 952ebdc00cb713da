//! Short sessions one after the other: facts that the user states in one and asks for in a later one.

use std::sync::Arc;

use windlass_api::{Part, Role};

use super::{AREAS, Draft, prefix};
use crate::Session;

/// A statement with a value, a question for it in other words, and the form of the value.
const FACTS: [(&str, &str, &str); 10] = [
    (
        "The staging database is {}.",
        "Which database do we use for staging?",
        "db-stage-{}.internal",
    ),
    (
        "We decided that failed uploads are retried until ticket {} is closed.",
        "What did we decide about retries of uploads, which ticket was it?",
        "OPS-{}",
    ),
    (
        "The generated schema lives in {}; never edit it by hand.",
        "Where does the schema live that is generated?",
        "src/generated/schema_{}.rs",
    ),
    (
        "Releases for customers in Asia carry the tag {}.",
        "What is the tag of a release for Asia?",
        "asia/v3.{}",
    ),
    (
        "The load test has to stay below {} per request.",
        "How long may one request take in load tests?",
        "{}_ms",
    ),
    (
        "The billing export writes its files to {}.",
        "Where do I find the files of the billing export?",
        "/var/exports/billing-{}",
    ),
    (
        "Hannah owns the branch {}, ask her before you push to it.",
        "Which branch belongs to Hannah?",
        "feature/windward-{}",
    ),
    (
        "The nightly job runs on the machine {}.",
        "Which machine runs the job at night?",
        "worker-{}.internal",
    ),
    (
        "Customers see prices from the table {}.",
        "What table are the prices read from?",
        "prices_v{}",
    ),
    (
        "The certificate of the proxy is in {}.",
        "Where is the certificate for the proxy kept?",
        "/etc/proxy/cert-{}.pem",
    ),
];

/// Number of sessions between a statement and the question.
const DISTANCE: usize = 3;

/// Generates sessions of three turns: a statement, work on something else, and a question about an earlier statement.
pub fn generate_series(seed: u64, sessions: usize) -> Vec<Session> {
    let mut stated: Vec<(&str, String)> = Vec::new();
    let mut series = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let mut draft = Draft::new(seed.wrapping_mul(1_000).wrapping_add(number as u64), 1);
        // Every value is new, also when a statement comes again.
        let (statement, question, form) = FACTS[number % FACTS.len()];
        let value = form.replace("{}", &draft.random.between(1_000, 999_999).to_string());
        draft.push(Role::User, vec![Part::text(statement.replace("{}", &value))]);
        draft.push(Role::Assistant, vec![Part::text("Understood.")]);
        stated.push((question, value));
        let area = *draft.random.pick(&AREAS);
        draft.push(Role::User, vec![Part::text(format!("Please look at {area}."))]);
        for _ in 0..3 {
            draft.step(area, None);
        }
        let cause = draft.random.name();
        draft.push(
            Role::Assistant,
            vec![Part::text(format!("{area} is mended; the cause was in {cause}."))],
        );
        if let Some((question, value)) = number.checked_sub(DISTANCE).and_then(|place| stated.get(place)) {
            draft.push(Role::User, vec![Part::text(*question)]);
            draft.push(Role::Assistant, vec![Part::text(format!("It is {value}."))]);
        }
        series.push(Session {
            name: format!("series-{seed}-{}", number + 1),
            prefix: Arc::new(prefix()),
            messages: draft.messages,
            needs: Vec::new(),
            stretches: Vec::new(),
        });
    }
    series
}
