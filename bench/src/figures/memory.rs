//! Memory: evidence found on a public benchmark of long conversations, and the time of a search among many units.
//!
//! The data is not part of the repository: `--data FILE` names `locomo10.json` of the LoCoMo benchmark. Weights were
//! chosen on its conversations 0 to 4; the figures are from 5 to 9, categories 1 to 4. A figure is the share of the turns
//! that answer a question among the first ten, or of the sessions among the first five. Turns have the day of their
//! session, as memory has it of every message.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use windlass_core::clock::{Timestamp, system};
use windlass_core::id::SessionId;
use windlass_core::log::{MemoryKind, MemorySource, Store};
use windlass_memory::unit::said;
use windlass_memory::{
    EmbedError, EmbedPurpose, Embedder, MINILM_MODEL, Memory, MiniLm, Scopes, embed_missing,
};

use crate::lab::Lab;
use crate::process;
use crate::report::{Figure, Target};

/// Units of the search that is timed.
const MANY: usize = 100_000;

/// Measures what the given files allow, as figures.
pub(crate) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (data, model) = &lab.memory;
    let mut measured = measure_all(data.as_deref(), model.as_deref(), lab.quick)?;
    if let Some(model) = model {
        measured.push(model_memory(lab, model)?);
    }
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
    let model = model.map(MiniLm::read).transpose()?;
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
                let mut add = |way: &str, shares: &Shares, targets: [f64; 2]| {
                    let figures_of = [
                        quality(&format!("R@10 {way}, {half}"), shares.turns, targets[0]),
                        quality(&format!("session R@5 {way}, {half}"), shares.sessions, targets[1]),
                        quality(
                            &format!("session R@5 {way}, with unanswerable questions, {half}"),
                            shares.all_sessions,
                            0.0,
                        ),
                    ];
                    figures.extend(figures_of);
                };
                add("by words", &recall(&part, None).await?, [targets[0], 0.0]);
                if let Some(model) = &model {
                    let embedder: Arc<dyn Embedder> = Arc::new(model.clone());
                    let both = recall(&part, Some(embedder)).await?;
                    add("with vectors", &both, [targets[2], targets[1]]);
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
        figures.extend(among_many(units, model).await?);
        Ok(figures)
    })
}

/// Returns the memory that the local model adds to `windlass memory search`, at its peak.
fn model_memory(lab: &Lab, model: &Path) -> Result<Measured> {
    let folder = lab.path("memory-folder");
    std::fs::create_dir_all(&folder)?;
    let home = lab.path("memory-home");
    let installed = home.join("data/models/minilm-l6-v2.bin");
    std::fs::create_dir_all(home.join("data/models"))?;
    let command = |args: &[&str]| {
        let mut command = lab.windlass_in(&folder);
        command.env("WINDLASS_HOME", &home).args(args);
        command
    };
    let note = "Releases are cut every second Thursday after lunch.";
    process::run(&mut command(&["memory", "save", note]), process::Memory::Ignored)?;
    let search = ["memory", "search", "when do we ship a new version"];
    let without = process::run(&mut command(&search), process::Memory::Watched)?;
    std::fs::copy(model, &installed).with_context(|| installed.display().to_string())?;
    // The first search also makes the vector of the note; the second is what is compared.
    process::run(&mut command(&search), process::Memory::Ignored)?;
    let with = process::run(&mut command(&search), process::Memory::Watched)?;
    Ok(Measured {
        name: "memory of the local model, at its peak".to_owned(),
        value: with.peak.saturating_sub(without.peak) as f64 * 1_024.0 / 1e6,
        unit: "MB",
        at_least: None,
        at_most: Some(60.0),
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
    turns: Vec<Turn>,
    /// Questions with the turns that answer them.
    questions: Vec<Question>,
}

struct Turn {
    session: usize,
    speaker: String,
    text: String,
    /// Day of the session.
    time: Timestamp,
}

struct Question {
    text: String,
    /// Turns with the evidence.
    evidence: Vec<usize>,
    /// False if the turns are about the subject, but do not answer the question.
    is_answered: bool,
}

/// Shares of evidence that was found.
struct Shares {
    /// Turns among the first ten.
    turns: f64,
    /// Sessions among the first five.
    sessions: f64,
    /// The same, also for questions without an answer.
    all_sessions: f64,
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
        let time = day(&text(
            &sample["conversation"][format!("session_{session}_date_time")],
        ));
        for turn in said {
            places.insert(text(&turn["dia_id"]), turns.len());
            let speaker = text(&turn["speaker"]);
            let mut words = format!("{speaker}: {}", text(&turn["text"]));
            if let Some(caption) = turn["blip_caption"].as_str() {
                words.push_str(&format!(" [shares {caption}]"));
            }
            turns.push(Turn {
                session,
                speaker,
                text: words,
                time,
            });
        }
    }
    let asked = sample["qa"].as_array().cloned().unwrap_or_default();
    let questions = asked
        .iter()
        .filter_map(|asked| {
            let evidence = asked["evidence"].as_array()?;
            let mut found: Vec<usize> = evidence
                .iter()
                .flat_map(|name| names(name.as_str().unwrap_or_default()))
                .filter_map(|name| places.get(&name).copied())
                .collect();
            found.sort_unstable();
            found.dedup();
            (!found.is_empty()).then(|| Question {
                text: text(&asked["question"]),
                evidence: found,
                is_answered: asked["category"].as_u64().is_some_and(|category| category <= 4),
            })
        })
        .collect();
    Conversation { turns, questions }
}

/// Returns the day of a time such as `1:56 pm on 8 May, 2023`; the first one of all if it is written otherwise.
fn day(text: &str) -> Timestamp {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let read = || {
        let (_, date) = text.split_once(" on ")?;
        let (day, rest) = date.split_once(' ')?;
        let (month, year) = rest.split_once(", ")?;
        let month = MONTHS.find(month.get(..3)?)? / 3 + 1;
        let date: jiff::civil::Date = format!("{year}-{month:02}-{day:0>2}").parse().ok()?;
        let noon = date.at(12, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        u64::try_from(noon.timestamp().as_millisecond()).ok()
    };
    Timestamp(read().unwrap_or(1))
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

/// Returns the shares of evidence that is found.
async fn recall(conversations: &[&Conversation], embedder: Option<Arc<dyn Embedder>>) -> Result<Shares> {
    let (mut turns, mut sessions, mut all_sessions) = (Vec::new(), Vec::new(), Vec::new());
    for conversation in conversations {
        let store = windlass_store::open("ephemeral:", system())?;
        let numbers = fill(&store, conversation).await?;
        let memory = Memory::new(Arc::clone(&store), embedder.clone(), system());
        let scopes = Scopes::of("bench");
        if let Some(embedder) = &embedder {
            embed_missing(&*store, &**embedder, scopes.names(), usize::MAX).await?;
            memory.load_vectors(&scopes).await?;
        }
        for question in &conversation.questions {
            let evidence = &question.evidence;
            let found = memory
                .search(&question.text, &scopes, (100, Duration::from_secs(60)))
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
            let session = session_share(conversation, &found, &ranked, evidence);
            all_sessions.push(session);
            if question.is_answered {
                turns.push(hits as f64 / evidence.len() as f64);
                sessions.push(session);
            }
        }
    }
    let mean = |shares: &[f64]| 100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    Ok(Shares {
        turns: mean(&turns),
        sessions: mean(&sessions),
        all_sessions: mean(&all_sessions),
    })
}

/// Returns the share of the sessions with the evidence among the first five.
fn session_share(
    conversation: &Conversation,
    found: &windlass_memory::SearchOutcome,
    ranked: &[usize],
    evidence: &[usize],
) -> f64 {
    let session = |turn: &usize| conversation.turns[*turn].session;
    let scores = found.hits.iter().map(|hit| f64::from(hit.score));
    let order = windlass_words::rank_sessions(ranked.iter().map(session).zip(scores));
    let mut wanted: Vec<usize> = evidence.iter().map(session).collect();
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
        let session = conversation.turns[start].session;
        let turns: Vec<_> = conversation.turns[start..]
            .iter()
            .take_while(|turn| turn.session == session)
            .collect();
        let source = MemorySource {
            scope: "bench".to_owned(),
            session: Some(SessionId::from(format!("session-{session}"))),
        };
        let units = turns
            .iter()
            .map(|turn| said(&turn.text, &turn.speaker, 1, turn.time))
            .collect();
        let ids = store.keep_units(&source, units, 1).await?;
        numbers.extend(ids.into_iter().zip(start..));
        start += turns.len();
    }
    Ok(numbers)
}

/// Makes vectors that point anywhere, for units whose meaning does not matter.
struct AnyVectors(std::sync::Mutex<Noise>);

#[async_trait::async_trait]
impl Embedder for AnyVectors {
    fn model(&self) -> &str {
        MINILM_MODEL
    }

    async fn embed(&self, texts: &[String], _: EmbedPurpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut noise = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let vector = |noise: &mut Noise| (0..384).map(|_| (noise.part() - 0.5) as f32 / 5.66).collect();
        Ok(texts.iter().map(|_| vector(&mut noise)).collect())
    }
}

/// Numbers that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    /// Returns the next number between 0 and 1.
    fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns words with the frequencies of real text: the nth is n times as rare as the first.
    fn words(&mut self, count: usize) -> String {
        let word = |noise: &mut Self| format!("w{}", 20_000f64.powf(noise.part()) as u64);
        (0..count).map(|_| word(self)).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the 99th percentile of the time of a search, in milliseconds: by words, and with vectors if there is a model.
async fn among_many(count: usize, model: Option<MiniLm>) -> Result<Vec<Measured>> {
    let store = windlass_store::open("ephemeral:", system())?;
    let mut noise = Noise(7);
    for session in 0..count / 500 {
        let source = MemorySource {
            scope: "bench".to_owned(),
            session: Some(SessionId::from(format!("session-{session}"))),
        };
        let units = (0..500)
            .map(|_| said(&noise.words(25), "user", 1, Timestamp(1)))
            .collect();
        store.keep_units(&source, units, 1).await?;
    }
    let scopes = Scopes::of("bench");
    let mut figures = vec![timed(
        format!("search among {count} units, by words, p99"),
        p99(&Memory::new(Arc::clone(&store), None, system()), &mut noise).await?,
        30.0,
    )];
    if let Some(model) = model {
        let vectors = AnyVectors(std::sync::Mutex::new(Noise(11)));
        embed_missing(&*store, &vectors, scopes.names(), usize::MAX).await?;
        let memory = Memory::new(store, Some(Arc::new(model)), system());
        let begun = Instant::now();
        memory.load_vectors(&scopes).await?;
        eprintln!("  read {count} vectors in {:.0?}", begun.elapsed());
        figures.push(timed(
            format!("search among {count} units, with vectors, p99"),
            p99(&memory, &mut noise).await?,
            60.0,
        ));
    }
    Ok(figures)
}

fn timed(name: String, value: f64, most: f64) -> Measured {
    Measured {
        name,
        value,
        unit: "ms",
        at_least: None,
        at_most: Some(most),
    }
}

/// Searches 200 questions of 8 words.
async fn p99(memory: &Memory, noise: &mut Noise) -> Result<f64> {
    let scopes = Scopes::of("bench");
    let mut times = Vec::new();
    for _ in 0..200 {
        let question = noise.words(8);
        let start = Instant::now();
        let found = memory
            .search(&question, &scopes, (10, Duration::from_secs(60)))
            .await?;
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
        if let Some((_, error)) = found.misses.iter().find(|(strategy, _)| *strategy == "semantic") {
            anyhow::bail!("a question was searched without a vector: {error}");
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() * 99 / 100])
}
