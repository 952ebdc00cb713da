//! Searches memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use windlass_core::clock::{Clock, Timestamp};
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, MemoryKind, MemoryMiss, MemoryQuery, MemoryUnit, Store, UserName};
use windlass_words::words;

use crate::analysis::{ENTITY, Term, terms};
use crate::embed::{EmbedPurpose, Embedder, MINILM_MODEL, Sketches, cosine};
use crate::entity::entities;
use crate::fragment::Injection;
use crate::period::{self, periods};
use crate::rank::{Scored, UnitMap, WEIGHTS, lexical};
use crate::secret::is_secret;

/// Maximum number of occurrences of words that are read for a question.
const POSTINGS: usize = 40_000;
/// Units that are looked at closely.
const CANDIDATES: usize = 200;
/// Units that are selected by their vectors.
const NEAREST: usize = 200;
/// Best units whose names are followed to other units.
const HOPS: usize = 5;
/// A name in more units than this connects nothing.
const COMMON_NAME: u64 = 12;
/// Part of the best score that a unit gets through a name.
const HOP_SCORE: f32 = 0.35;
/// Influence of age at most, and the age in milliseconds after which half of it is gone.
const RECENCY: f32 = 0.1;
const HALF_LIFE: f64 = 30.0 * 86_400_000.0;
/// Relevance of a similar meaning, compared with the share of words: of the notes that bench/ asks for in other words, four
/// in five have a similarity of 0.28, and few others do.
const MEANING: f32 = 1.25;
/// Maximum length of a recorded question in characters.
const MAX_MISS: usize = 512;
/// Maximum number of lessons at the start of a session.
const LESSONS: usize = 12;

/// Scopes of a session: its project, and the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes of a project in a folder.
    pub fn of(project: &str) -> Self {
        Self(vec![project.to_owned(), user_scope(project)])
    }

    /// The names of the scopes.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// Returns the scope of all projects of the user whose project this is.
pub fn user_scope(project: &str) -> String {
    UserName::split(project).0.scoped("")
}

/// Returns true if a scope is that of all projects of a user.
pub fn is_user_scope(scope: &str) -> bool {
    UserName::split(scope).1.is_empty()
}

/// Limits of recall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryLimits {
    /// Maximum number of units.
    pub results: usize,
    /// Maximum number of tokens.
    pub budget: usize,
    /// Maximum time.
    pub time: Duration,
    /// Share of the question's telling words, or similarity of meaning, below which a unit is not recalled.
    pub threshold: f32,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            results: 8,
            budget: 1_000,
            time: Duration::from_millis(150),
            threshold: 0.35,
        }
    }
}

/// A unit that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The unit.
    pub unit: MemoryUnit,
    /// Score; the best possible is about the sum of the weights.
    pub score: f32,
    /// Share of the question's telling words that it contains, or similarity of meaning, whichever is more.
    pub relevance: f32,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchOutcome {
    /// Units, the best first.
    pub hits: Vec<Hit>,
    /// Strategies that found nothing or failed, with `no_results` or the reason.
    pub misses: Vec<(&'static str, String)>,
}

/// Vectors that were read, by model and scope. Clones share them.
#[derive(Clone, Default)]
pub struct VectorCache(Arc<Mutex<HashMap<VectorKey, Arc<Sketches>>>>);

/// Model and scope of vectors.
type VectorKey = (String, String);

/// Searches memory. Cheap to clone; clones share the vectors they have read.
#[derive(Clone)]
pub struct Memory {
    store: Arc<dyn Store>,
    embedder: Option<Arc<dyn Embedder>>,
    cache: VectorCache,
    clock: Arc<dyn Clock>,
}

impl Memory {
    /// Creates a search over a store.
    pub fn new(store: Arc<dyn Store>, embedder: Option<Arc<dyn Embedder>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            embedder,
            cache: VectorCache::default(),
            clock,
        }
    }

    /// Shares the vectors that were read with others of the same store.
    #[must_use]
    pub fn sharing(mut self, cache: &VectorCache) -> Self {
        self.cache = cache.clone();
        self
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The embedder, if one is set up.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref().filter(|embedder| embedder.is_available())
    }

    /// Returns true if search goes by words because the local model is not installed.
    pub fn lacks_model(&self) -> bool {
        let is_missing =
            |embedder: &Arc<dyn Embedder>| embedder.model() == MINILM_MODEL && !embedder.is_available();
        self.embedder.as_ref().is_some_and(is_missing)
    }

    /// Reads the vectors of the scopes again, with those that were made since the last time. Belongs in the background.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn load_vectors(&self, scopes: &Scopes) -> Result<(), LogError> {
        let Some(embedder) = self.embedder() else {
            return Ok(());
        };
        let model = embedder.model();
        if self.store.nearest(model, scopes.names(), &[], 0).await?.is_none() {
            for scope in scopes.names() {
                self.read_sketches(model, scope).await?;
            }
        }
        Ok(())
    }

    /// Prepares a search by meaning: reads the vectors of the scopes, and the model if there are any. Belongs in the
    /// background.
    pub async fn warm_up(&self, scopes: &Scopes) {
        if let Some(embedder) = self.embedder() {
            // Any word will do; servers refuse an empty text.
            let _ = self.near_vector(embedder, "memory", scopes).await;
        }
    }

    async fn read_sketches(&self, model: &str, scope: &str) -> Result<Arc<Sketches>, LogError> {
        // Numbers of units grow within a source only, so the vectors of a scope are read as a whole.
        let rows = self.store.sketches(model, scope, 0, 0).await?;
        let read = Arc::new(Sketches::new(rows));
        lock(&self.cache.0).insert((model.to_owned(), scope.to_owned()), Arc::clone(&read));
        Ok(read)
    }

    /// Returns the sketches of the scopes; none if the store compares vectors itself.
    async fn sketches(&self, model: &str, scopes: &Scopes) -> Result<Vec<Arc<Sketches>>, LogError> {
        let by_store = self.store.nearest(model, scopes.names(), &[], 0).await?;
        let mut sketches = Vec::new();
        for scope in scopes.names().iter().filter(|_| by_store.is_none()) {
            let known = lock(&self.cache.0)
                .get(&(model.to_owned(), scope.clone()))
                .cloned();
            sketches.push(match known {
                Some(known) => known,
                None => self.read_sketches(model, scope).await?,
            });
        }
        Ok(sketches)
    }

    /// Returns the vector of a question, and the units nearest to it.
    async fn near_vector(
        &self,
        embedder: &Arc<dyn Embedder>,
        question: &str,
        scopes: &Scopes,
    ) -> Result<Nearest, String> {
        let model = embedder.model();
        let sketches = self.sketches(model, scopes).await;
        let sketches = sketches.map_err(|error| error.to_string())?;
        if !sketches.is_empty() && sketches.iter().all(|sketches| sketches.is_empty()) {
            return Err(PENDING.to_owned());
        }
        let question = [question.to_owned()];
        let made = embedder.embed(&question, EmbedPurpose::Question).await;
        let vectors = made.map_err(|error| error.to_string())?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        let units = match sketches.is_empty() {
            true => {
                let found = self.store.nearest(model, scopes.names(), &vector, NEAREST).await;
                found.map_err(|error| error.to_string())?.unwrap_or_default()
            }
            false => {
                let scopes = sketches.iter();
                let mut near: Vec<(u64, u32)> = scopes
                    .flat_map(|sketches| sketches.nearest(&vector, NEAREST))
                    .collect();
                near.sort_by_key(|(_, distance)| *distance);
                near.truncate(NEAREST);
                near.into_iter().map(|(unit, _)| unit).collect()
            }
        };
        if units.is_empty() {
            return Err(PENDING.to_owned());
        }
        Ok(Nearest { vector, units })
    }

    /// Ranks the units of the scopes for a question, at most `most`. A question without a vector after `patience` is
    /// searched by its words.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn search(
        &self,
        question: &str,
        scopes: &Scopes,
        (most, patience): (usize, Duration),
    ) -> Result<SearchOutcome, LogError> {
        let mut outcome = SearchOutcome::default();
        let terms = terms(question);
        // The vector of the question is made while the words are read.
        let (scored, near) = tokio::join!(
            self.by_words(&terms, scopes),
            self.nearest(question, scopes, patience)
        );
        let scored = scored?;
        if scored.is_empty() {
            outcome.misses.push(("fulltext", NO_RESULTS.to_owned()));
        }
        let near = near.unwrap_or_else(|reason| {
            outcome.misses.push(("semantic", reason));
            Nearest::default()
        });
        let mut candidates = scored.best(CANDIDATES);
        let known: HashSet<u64> = candidates.iter().copied().collect();
        candidates.extend(near.units.iter().copied().filter(|unit| !known.contains(unit)));
        let similar = self.similarities(&near, &candidates).await?;
        let units = self.store.units(&candidates).await?;
        let mut hits = self.score(units, &scored, &similar, question);
        self.hop(&mut hits, scopes, &mut outcome.misses).await?;
        dedupe(&mut hits);
        hits.truncate(most);
        outcome.hits = hits;
        Ok(outcome)
    }

    /// Scores the units of the scopes by the words of a question.
    async fn by_words(&self, terms: &[Term], scopes: &Scopes) -> Result<Scored, LogError> {
        let words: Vec<String> = terms.iter().flatten().cloned().collect();
        let mut scored = Scored::default();
        for scope in scopes.names() {
            let postings = self.store.postings(scope, &words, POSTINGS).await?;
            lexical(postings, terms, &mut scored);
        }
        Ok(scored)
    }

    /// Returns the units whose vectors are nearest to the question, or the reason there are none to compare.
    async fn nearest(&self, question: &str, scopes: &Scopes, patience: Duration) -> Result<Nearest, String> {
        let Some(embedder) = self.embedder().cloned() else {
            return Ok(Nearest::default());
        };
        // A task of its own: when time is up, it continues for the next question.
        let (memory, question, asked) = (self.clone(), question.to_owned(), scopes.clone());
        let making = tokio::spawn(async move { memory.near_vector(&embedder, &question, &asked).await });
        tokio::select! {
            biased;
            made = making => made.unwrap_or_else(|error| Err(error.to_string())),
            () = self.clock.sleep(patience) => Err(format!("no vector within {} ms", patience.as_millis())),
        }
    }

    /// Returns the similarity of each candidate and its neighbours with the question.
    async fn similarities(&self, near: &Nearest, candidates: &[u64]) -> Result<UnitMap<f32>, LogError> {
        let Some(embedder) = self.embedder().filter(|_| !near.vector.is_empty()) else {
            return Ok(UnitMap::default());
        };
        let mut ids: Vec<u64> = candidates
            .iter()
            .flat_map(|unit| [unit.saturating_sub(1), *unit, unit + 1])
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let vectors = self.store.vectors(embedder.model(), &ids).await?;
        Ok(vectors
            .iter()
            .map(|(unit, vector)| (*unit, cosine(&near.vector, vector)))
            .collect())
    }

    /// Combines the scores of units, the best first.
    fn score(
        &self,
        units: Vec<MemoryUnit>,
        scored: &Scored,
        similar: &UnitMap<f32>,
        question: &str,
    ) -> Vec<Hit> {
        let (alone, around) = scored.maxima();
        let smooth = |unit: u64| {
            let of = |unit: u64| similar.get(&unit).copied();
            let middle = of(unit).unwrap_or_default();
            let beside = [of(unit.saturating_sub(1)), of(unit + 1)];
            let count = beside.iter().flatten().count() as f32;
            let sum: f32 = beside.iter().flatten().sum();
            (middle + 0.5 * sum) / (1.0 + 0.5 * count)
        };
        let most = |part: &dyn Fn(u64) -> f32| {
            let all = units.iter().map(|unit| part(unit.id));
            all.fold(f32::MIN_POSITIVE, f32::max)
        };
        let plain = |unit: u64| similar.get(&unit).copied().unwrap_or_default();
        let (most_plain, most_smooth) = (most(&plain), most(&smooth));
        let passages: Vec<f32> = units
            .iter()
            .map(|unit| scored.passage(unit.id, unit.session.is_none()))
            .collect();
        let passage = passages.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        // Where the best unit has few words of the question, words say little, and the meaning decides.
        let trust = scored.trust();
        let asked: HashSet<String> = words(question).into_iter().collect();
        let now = self.clock.now();
        let periods = periods(question, now);
        let mut hits: Vec<Hit> = units
            .into_iter()
            .zip(passages)
            .map(|(unit, covered)| {
                let words = scored.of(unit.id);
                let mut score = WEIGHTS.alone * words.alone / alone
                    + WEIGHTS.around * words.around / around
                    + WEIGHTS.passage * covered / passage;
                if !similar.is_empty() {
                    score *= trust;
                    score += WEIGHTS.vector * plain(unit.id).max(0.0) / most_plain;
                    score += WEIGHTS.smooth * smooth(unit.id).max(0.0) / most_smooth;
                }
                if asked.contains(&unit.speaker.to_lowercase()) {
                    score += WEIGHTS.speaker;
                }
                score += WEIGHTS.period * period::fit(&periods, unit.time);
                score *= 1.0 + RECENCY * freshness(unit.time, now);
                let share = words.found / scored.telling.max(f32::MIN_POSITIVE);
                Hit {
                    relevance: share.max(MEANING * plain(unit.id)).min(1.0),
                    score,
                    unit,
                }
            })
            .collect();
        hits.sort_by(order);
        hits
    }

    /// Adds units that share a rare name with the best ones.
    async fn hop(
        &self,
        hits: &mut Vec<Hit>,
        scopes: &Scopes,
        misses: &mut Vec<(&'static str, String)>,
    ) -> Result<(), LogError> {
        let Some(top) = hits.first().map(|hit| hit.score) else {
            return Ok(());
        };
        let mut names: HashMap<String, f32> = HashMap::new();
        for hit in hits.iter().take(HOPS) {
            for name in entities(&hit.unit.text) {
                let through = names.entry(format!("{ENTITY}{name}")).or_default();
                *through = through.max(hit.relevance * hit.score / top);
            }
        }
        let asked: Vec<String> = names.keys().cloned().collect();
        // Names that are too common are not read at all.
        let most = asked.len() * usize::try_from(COMMON_NAME).unwrap_or_default();
        let mut reached: UnitMap<(f32, f32)> = UnitMap::default();
        for scope in scopes.names().iter().filter(|_| !asked.is_empty()) {
            for word in self.store.postings(scope, &asked, most).await?.words {
                if word.units > COMMON_NAME {
                    continue;
                }
                let strength =
                    names.get(&word.word).copied().unwrap_or_default() / (1.0 + word.units as f32).ln();
                for (unit, _, _) in word.places {
                    let reached = reached.entry(unit).or_default();
                    reached.0 += strength * top * HOP_SCORE;
                    reached.1 = reached.1.max(strength * 0.7);
                }
            }
        }
        for hit in hits.iter() {
            reached.remove(&hit.unit.id);
        }
        if reached.is_empty() {
            if !asked.is_empty() {
                misses.push(("graph", NO_RESULTS.to_owned()));
            }
            return Ok(());
        }
        let mut ids: Vec<u64> = reached.keys().copied().collect();
        ids.sort_unstable();
        ids.truncate(CANDIDATES);
        for unit in self.store.units(&ids).await? {
            let (score, relevance) = reached.get(&unit.id).copied().unwrap_or_default();
            hits.push(Hit {
                unit,
                score,
                relevance,
            });
        }
        hits.sort_by(order);
        Ok(())
    }

    /// Returns what a turn should know. `known` is text that the model already sees, and `is_first` is true for the
    /// first turn of a session, which starts with pinned units and lessons. Misses are recorded in the background.
    /// Takes no longer than the limit; a search that does is a miss.
    pub async fn recall(
        &self,
        question: &str,
        scopes: &Scopes,
        (session, known, is_first): (&SessionId, &str, bool),
        limits: MemoryLimits,
    ) -> Injection {
        let found = tokio::select! {
            biased;
            found = self.recalled(question, scopes, (session, known, is_first), limits) => found,
            () = self.clock.sleep(limits.time) => Err(LogError::Failed(format!("no answer within {} ms", limits.time.as_millis()))),
        };
        match found {
            Ok((units, misses)) => {
                for (strategy, error) in misses {
                    self.miss(question, strategy, &error, session);
                }
                let injection = Injection::new(units, limits.budget);
                if injection.fragment.is_none() {
                    self.miss(question, "hybrid", NO_RESULTS, session);
                }
                injection
            }
            Err(error) => {
                self.miss(question, "hybrid", &error.to_string(), session);
                Injection::default()
            }
        }
    }

    async fn recalled(
        &self,
        question: &str,
        scopes: &Scopes,
        (session, known, is_first): (&SessionId, &str, bool),
        limits: MemoryLimits,
    ) -> Result<(Vec<MemoryUnit>, Vec<(&'static str, String)>), LogError> {
        let mut units = Vec::new();
        if is_first {
            units.extend(self.standing(scopes).await?);
        }
        let outcome = self
            .search(question, scopes, (limits.results * 4, limits.time * 2 / 3))
            .await?;
        let mut misses = outcome.misses;
        let is_new = |unit: &MemoryUnit| {
            let start: String = unit.text.chars().take(160).collect();
            unit.session.as_ref() != Some(session) && !known.contains(&start)
        };
        let enough: Vec<MemoryUnit> = outcome
            .hits
            .into_iter()
            .filter(|hit| hit.relevance >= limits.threshold)
            .map(|hit| hit.unit)
            .collect();
        if enough.is_empty() && misses.is_empty() {
            misses.push(("fulltext", NO_RESULTS.to_owned()));
        }
        units.extend(enough.into_iter().take(limits.results));
        let mut seen = HashSet::new();
        // A lesson that was confirmed for all projects is there twice.
        units.retain(|unit| is_new(unit) && seen.insert(unit.text.clone()));
        Ok((units, misses))
    }

    /// Returns the units that every session of the scopes starts with.
    async fn standing(&self, scopes: &Scopes) -> Result<Vec<MemoryUnit>, LogError> {
        let pinned = MemoryQuery {
            scopes: scopes.names().to_vec(),
            pinned: true,
            limit: LESSONS,
            ..MemoryQuery::default()
        };
        let lessons = MemoryQuery {
            scopes: scopes.names().to_vec(),
            kinds: vec![MemoryKind::Lesson, MemoryKind::Preference],
            limit: LESSONS,
            ..MemoryQuery::default()
        };
        let mut units = self.store.list_units(&pinned).await?;
        units.extend(self.store.list_units(&lessons).await?);
        Ok(units)
    }

    /// Records a search that found nothing. Nobody waits for it.
    pub fn miss(&self, question: &str, strategy: &str, error: &str, session: &SessionId) {
        let query = match is_secret(question) {
            true => "[secret]".to_owned(),
            false => question.chars().take(MAX_MISS).collect(),
        };
        let miss = MemoryMiss {
            outcome_type: "memory_miss".to_owned(),
            query,
            strategy: strategy.to_owned(),
            error: error.to_owned(),
            session_id: session.as_str().to_owned(),
            ts: self.clock.now().0 / 1_000,
        };
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let _ = store.keep_miss(miss).await;
        });
    }
}

/// Reason of a miss without an error.
const NO_RESULTS: &str = "no_results";

/// Reason of a search without vectors: none was made yet.
const PENDING: &str = "vectors_pending";

/// The vector of a question, and the units nearest to it.
#[derive(Default)]
struct Nearest {
    vector: Vec<f32>,
    units: Vec<u64>,
}

fn order(a: &Hit, b: &Hit) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(b.unit.id.cmp(&a.unit.id))
}

/// Returns 1 for now, and half of it a month ago.
fn freshness(time: Timestamp, now: Timestamp) -> f32 {
    let age = now.0.saturating_sub(time.0) as f64;
    (-std::f64::consts::LN_2 * age / HALF_LIFE).exp() as f32
}

/// Keeps the first of units with the same text.
fn dedupe(hits: &mut Vec<Hit>) {
    let mut seen = HashSet::new();
    hits.retain(|hit| seen.insert(hit.unit.text.clone()));
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
