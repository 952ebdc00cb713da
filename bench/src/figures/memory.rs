//! Memory: evidence found on a public benchmark of long conversations, and the time of a search among many units.
//!
//! The data is not part of the repository: `--data FILE` names `locomo10.json` of the LoCoMo benchmark. Weights were
//! chosen on its conversations 0 to 4; the figures are from 5 to 9, categories 1 to 4. A figure is the share of the turns
//! that answer a question among the first ten, or of the sessions among the first five.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use windlass_core::clock::{Timestamp, system};
use windlass_core::id::SessionId;
use windlass_core::log::{MemoryKind, MemorySource, Store};
use windlass_memory::unit::said;
use windlass_memory::{Embedder, Memory, MiniLm, Scopes, embed_missing};

use crate::lab::Lab;
use crate::report::{Figure, Target};

/// Units of the search that is timed.
const MANY: usize = 100_000;

/// Measures what the given files allow, as figures.
pub(crate) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (data, model) = &lab.memory;
    let measured = measure_all(data.as_deref(), model.as_deref(), lab.quick)?;
    let figures = measured.into_iter().map(|measured| Figure {
        agent: format!("{:.1} {}", measured.value, measured.unit),
        name: measured.name,
        floor: String::new(),
        value: measured.value,
        unit: measured.unit,
        target: match (measured.at_least, measured.at_most) {
            (Some(least), _) => Target::AtLeast(least),
            (None, Some(most)) => Target::AtMost(most),
            (None, None) => Target::None,
        },
    });
    Ok(figures.collect())
}

/// Measured values: name, value, and the least or most that is wanted.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
}

fn quality(name: &str, value: f64, least: f64) -> Measured {
    Measured {
        name: name.to_owned(),
        value,
        unit: "%",
        at_least: (least > 0.0).then_some(least),
        at_most: None,
    }
}

/// Measures everything that the given files allow.
pub(crate) fn measure_all(data: Option<&Path>, model: Option<&Path>, quick: bool) -> Result<Vec<Measured>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let model = model.map(std::fs::read).transpose()?;
    let model = model.map(|bytes| MiniLm::read(&bytes)).transpose()?;
    runtime.block_on(async {
        let mut figures = Vec::new();
        if let Some(data) = data {
            let conversations = conversations(data)?;
            for (half, range) in [("tuning half", 0..5), ("conversations 5 to 9", 5..10)] {
                let part: Vec<&Conversation> = conversations.iter().skip(range.start).take(5).collect();
                let targets = if range.start == 5 {
                    [69.0, 87.0, 72.5]
                } else {
                    [0.0; 3]
                };
                let lexical = recall(&part, None).await?;
                figures.push(quality(&format!("R@10 by words, {half}"), lexical.0, targets[0]));
                figures.push(quality(
                    &format!("session R@5 by words, {half}"),
                    lexical.1,
                    targets[1],
                ));
                if let Some(model) = &model {
                    let embedder: Arc<dyn Embedder> = Arc::new(model.clone());
                    let both = recall(&part, Some(embedder)).await?;
                    figures.push(quality(&format!("R@10 with vectors, {half}"), both.0, targets[2]));
                    figures.push(quality(&format!("session R@5 with vectors, {half}"), both.1, 0.0));
                }
            }
        }
        if let Some(model) = &model {
            let embedder: Arc<dyn Embedder> = Arc::new(model.clone());
            figures.push(quality(
                "100 notes by paraphrases, hit@5, by words",
                notes(None).await?,
                0.0,
            ));
            figures.push(quality(
                "100 notes by paraphrases, hit@5, with vectors",
                notes(Some(embedder)).await?,
                90.0,
            ));
        }
        let units = if quick { MANY / 10 } else { MANY };
        let time = among_many(units).await?;
        figures.push(Measured {
            name: format!("search among {units} units, by words, p99"),
            value: time,
            unit: "ms",
            at_least: None,
            at_most: Some(30.0),
        });
        Ok(figures)
    })
}

/// Notes, and questions that share hardly a word with them, separated by tabs.
const NOTES: &str = include_str!("memory_notes.tsv");

/// Returns the share of notes that their question finds among the first five.
async fn notes(embedder: Option<Arc<dyn Embedder>>) -> Result<f64> {
    let store = windlass_store::open("ephemeral:", system())?;
    let memory = Memory::new(Arc::clone(&store), embedder.clone(), system());
    let pairs: Vec<(&str, &str)> = NOTES.lines().filter_map(|line| line.split_once('\t')).collect();
    for (note, _) in &pairs {
        memory.save(note, "bench", MemoryKind::Note).await?;
    }
    let scopes = Scopes::of("bench");
    if let Some(embedder) = &embedder {
        embed_missing(&*store, &**embedder, scopes.names(), usize::MAX).await?;
        memory.load_vectors(&scopes).await?;
    }
    let mut hits = 0.0;
    for (note, question) in &pairs {
        let found = memory
            .search(question, &scopes, (5, Duration::from_secs(60)))
            .await?;
        if found.hits.iter().any(|hit| hit.unit.text == *note) {
            hits += 1.0;
        }
    }
    Ok(100.0 * hits / pairs.len() as f64)
}

struct Conversation {
    /// Session, speaker and text of each turn.
    turns: Vec<(usize, String, String)>,
    /// Questions with the turns that answer them.
    questions: Vec<(String, Vec<usize>)>,
}

fn conversations(path: &Path) -> Result<Vec<Conversation>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let data: Value = serde_json::from_str(&text)?;
    let all = data.as_array().context("the data is not a list")?;
    Ok(all.iter().map(conversation).collect())
}

fn conversation(sample: &Value) -> Conversation {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut turns = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for session in 1..100 {
        let Some(said) = sample["conversation"][format!("session_{session}")].as_array() else {
            continue;
        };
        for turn in said {
            places.insert(text(&turn["dia_id"]), turns.len());
            let speaker = text(&turn["speaker"]);
            let mut words = format!("{speaker}: {}", text(&turn["text"]));
            if let Some(caption) = turn["blip_caption"].as_str() {
                words.push_str(&format!(" [shares {caption}]"));
            }
            turns.push((session, speaker, words));
        }
    }
    let asked = sample["qa"].as_array().cloned().unwrap_or_default();
    let questions = asked
        .iter()
        .filter(|asked| asked["category"].as_u64().is_some_and(|category| category <= 4))
        .filter_map(|asked| {
            let evidence = asked["evidence"].as_array()?;
            let mut found: Vec<usize> = evidence
                .iter()
                .flat_map(|name| names(name.as_str().unwrap_or_default()))
                .filter_map(|name| places.get(&name).copied())
                .collect();
            found.sort_unstable();
            found.dedup();
            (!found.is_empty()).then(|| (text(&asked["question"]), found))
        })
        .collect();
    Conversation { turns, questions }
}

/// Returns the names of turns in a text such as `D8:6; D9:17`.
fn names(text: &str) -> Vec<String> {
    text.split(|sign: char| sign.is_whitespace() || matches!(sign, ';' | ','))
        .filter_map(|word| {
            let (session, turn) = word
                .trim_start_matches('D')
                .trim_start_matches(':')
                .split_once(':')?;
            let (session, turn): (u32, u32) = (session.parse().ok()?, turn.parse().ok()?);
            Some(format!("D{session}:{turn}"))
        })
        .collect()
}

/// Returns the share of evidence among the first ten turns, and of its sessions among the first five.
async fn recall(conversations: &[&Conversation], embedder: Option<Arc<dyn Embedder>>) -> Result<(f64, f64)> {
    let (mut turns, mut sessions, mut count) = (0.0, 0.0, 0.0);
    for conversation in conversations {
        let store = windlass_store::open("ephemeral:", system())?;
        let numbers = fill(&store, conversation).await?;
        let memory = Memory::new(Arc::clone(&store), embedder.clone(), system());
        let scopes = Scopes::of("bench");
        if let Some(embedder) = &embedder {
            embed_missing(&*store, &**embedder, scopes.names(), usize::MAX).await?;
            memory.load_vectors(&scopes).await?;
        }
        for (question, evidence) in &conversation.questions {
            let found = memory
                .search(question, &scopes, (100, Duration::from_secs(60)))
                .await?;
            let ranked: Vec<usize> = found
                .hits
                .iter()
                .filter_map(|hit| numbers.get(&hit.unit.id).copied())
                .collect();
            let hits = evidence
                .iter()
                .filter(|turn| ranked.iter().take(10).any(|hit| hit == *turn))
                .count();
            turns += hits as f64 / evidence.len() as f64;
            sessions += session_share(conversation, &found, &ranked, evidence);
            count += 1.0;
        }
    }
    Ok((100.0 * turns / count, 100.0 * sessions / count))
}

/// A session scores 1, ½, ¼, ⅛ of its best turns.
fn session_share(
    conversation: &Conversation,
    found: &windlass_memory::SearchOutcome,
    ranked: &[usize],
    evidence: &[usize],
) -> f64 {
    let mut scores: HashMap<usize, (f64, f64)> = HashMap::new();
    for (hit, turn) in found.hits.iter().zip(ranked) {
        let score = scores.entry(conversation.turns[*turn].0).or_insert((0.0, 1.0));
        score.0 += f64::from(hit.score) * score.1;
        score.1 /= 2.0;
    }
    let mut order: Vec<(usize, f64)> = scores
        .into_iter()
        .map(|(session, score)| (session, score.0))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut wanted: Vec<usize> = evidence.iter().map(|turn| conversation.turns[*turn].0).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let hits = wanted
        .iter()
        .filter(|session| order.iter().take(5).any(|(found, _)| found == *session))
        .count();
    hits as f64 / wanted.len() as f64
}

/// Keeps the turns of a conversation. Returns the place of each unit.
async fn fill(store: &Arc<dyn Store>, conversation: &Conversation) -> Result<HashMap<u64, usize>> {
    let mut numbers = HashMap::new();
    let mut start = 0;
    while start < conversation.turns.len() {
        let session = conversation.turns[start].0;
        let turns: Vec<_> = conversation.turns[start..]
            .iter()
            .take_while(|turn| turn.0 == session)
            .collect();
        let source = MemorySource {
            scope: "bench".to_owned(),
            session: Some(SessionId::from(format!("session-{session}"))),
        };
        let units = turns
            .iter()
            .map(|(_, speaker, text)| said(text, speaker, 1, Timestamp(1)))
            .collect();
        let ids = store.keep_units(&source, units, 1).await?;
        numbers.extend(ids.into_iter().zip(start..));
        start += turns.len();
    }
    Ok(numbers)
}

/// Returns the 99th percentile of the time of a search, in milliseconds.
async fn among_many(count: usize) -> Result<f64> {
    let store = windlass_store::open("ephemeral:", system())?;
    let mut seed = 7u64;
    let mut word = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Word frequencies as in real text: the nth word is n times as rare as the first.
        let part = (seed >> 11) as f64 / (1u64 << 53) as f64;
        format!("w{}", (20_000f64.powf(part)) as u64)
    };
    for session in 0..count / 500 {
        let source = MemorySource {
            scope: "bench".to_owned(),
            session: Some(SessionId::from(format!("session-{session}"))),
        };
        let units = (0..500)
            .map(|_| {
                let text: Vec<String> = (0..25).map(|_| word()).collect();
                said(&text.join(" "), "user", 1, Timestamp(1))
            })
            .collect();
        store.keep_units(&source, units, 1).await?;
    }
    let memory = Memory::new(store, None, system());
    let scopes = Scopes::of("bench");
    let mut times = Vec::new();
    for _ in 0..200 {
        let question: Vec<String> = (0..8).map(|_| word()).collect();
        let start = Instant::now();
        memory
            .search(&question.join(" "), &scopes, (10, Duration::ZERO))
            .await?;
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() * 99 / 100])
}
