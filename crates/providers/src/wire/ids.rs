//! Call ids: unique within a request, valid for its wire, the same for a call and its result.
//!
//! Providers repeat ids (`call_0` in every turn) and differ in what they accept as an id, while every wire
//! requires ids to be unique within a request. Two places ensure that. The decoder replaces an id that the
//! conversation already has, so our own history never repeats one. The encoder renames the calls of a message
//! whose ids are taken or foreign to the wire, using the message's position; the results that follow get the
//! same names. Usually nothing needs renaming.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use windlass_core::message::{Message, Role};

use super::Wire;

/// Assigns ids to the calls of a reply.
#[derive(Debug)]
pub(crate) struct CallIds {
    history: Arc<Vec<Arc<Message>>>,
    given: Vec<String>,
    seed: String,
    wire: Wire,
    short: bool,
}

impl CallIds {
    pub(crate) fn new(history: Arc<Vec<Arc<Message>>>, wire: Wire, short: bool) -> Self {
        // The same in a replay, whose messages have other ids.
        let seed = history.len().to_string();
        Self::seeded(history, wire, short, seed)
    }

    /// Creates ids derived from `seed`, so that the same response gives the same ids.
    pub(crate) fn seeded(history: Arc<Vec<Arc<Message>>>, wire: Wire, short: bool, seed: String) -> Self {
        Self {
            history,
            given: Vec::new(),
            seed,
            wire,
            short,
        }
    }

    /// Returns the provider's id, or a new one if that id is taken or the wire would not accept it back.
    pub(crate) fn admit(&mut self, id: &str) -> String {
        // Chat servers use ids of all kinds and accept their own ones back.
        let odd = id.is_empty() || (self.wire != Wire::Chat && !fits(id, self.wire, self.short));
        let id = if odd || self.is_taken(id) {
            let mut names = (self.given.len()..).map(|count| derived(&self.seed, id, count, self.short));
            // A compaction makes the history shorter, so that a seed comes back.
            names.find(|name| !self.is_taken(name)).unwrap_or_default()
        } else {
            id.to_owned()
        };
        self.given.push(id.clone());
        id
    }

    fn is_taken(&self, id: &str) -> bool {
        let is_of = |message: &Arc<Message>| message.calls().any(|call| call.id.as_str() == id);
        self.given.iter().any(|given| given == id) || self.history.iter().any(is_of)
    }
}

/// Decides, message by message and in order, which calls must be renamed.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    seen: HashSet<String>,
    /// Number of messages so far.
    count: usize,
    /// Number of the message whose calls are renamed.
    renamed: Option<usize>,
}

impl Naming {
    /// Returns the names of the calls or results of `message` on `wire`. `own` means that its ids came from
    /// this provider.
    pub(crate) fn next(&mut self, message: &Arc<Message>, wire: Wire, short: bool, own: bool) -> CallNames {
        self.count += 1;
        match message.role {
            Role::Assistant => {
                let mut rename = false;
                for call in message.calls() {
                    let id = call.id.as_str();
                    let fits = own && !id.is_empty() || fits(id, wire, short);
                    rename |= !fits || !self.seen.insert(id.to_owned());
                }
                self.renamed = rename.then_some(self.count);
            }
            Role::Tool => {}
            Role::User | Role::System => self.renamed = None,
        }
        CallNames {
            owner: self.renamed,
            short,
        }
    }
}

/// Returns true if every server of the wire accepts the id.
fn fits(id: &str, wire: Wire, short: bool) -> bool {
    let most = match wire {
        Wire::Chat => 40,
        Wire::Anthropic | Wire::Responses | Wire::Gemini => 64,
    };
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || (!short && matches!(byte, b'_' | b'-'));
    let length = if short {
        id.len() == 9
    } else {
        (1..=most).contains(&id.len())
    };
    length && id.bytes().all(letters)
}

/// Names of the calls or results of one message.
#[derive(Clone, Copy)]
pub(crate) struct CallNames {
    /// Number of the message with the calls, if they are renamed.
    owner: Option<usize>,
    short: bool,
}

impl CallNames {
    pub(crate) fn renamed(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns a namer for the ids of one message, in order.
    pub(crate) fn namer<'a>(self) -> Namer<'a> {
        Namer {
            names: self,
            seen: Vec::new(),
        }
    }
}

/// Names the ids of one message and distinguishes repeated ones by their order.
pub(crate) struct Namer<'a> {
    names: CallNames,
    seen: Vec<&'a str>,
}

impl<'a> Namer<'a> {
    pub(crate) fn name(&mut self, id: &'a str) -> Cow<'a, str> {
        let Some(owner) = self.names.owner else {
            return Cow::Borrowed(id);
        };
        let occurrence = self.seen.iter().filter(|seen| **seen == id).count();
        self.seen.push(id);
        Cow::Owned(derived(&owner.to_string(), id, occurrence, self.names.short))
    }
}

/// Derives an id from the position of a call: the same in every run, so that provider caches keep hitting.
fn derived(place: &str, id: &str, count: usize, short: bool) -> String {
    let mut hash = Fnv::default();
    hash.write(place.as_bytes());
    hash.write(&[0]);
    hash.write(id.as_bytes());
    hash.write(&[0]);
    hash.write(&count.to_le_bytes());
    if !short {
        return format!("call_{:016x}", hash.0);
    }
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = hash.0;
    let letters = (0..9).map(|_| {
        let letter = LETTERS[usize::try_from(rest % 36).unwrap_or(0)];
        rest /= 36;
        char::from(letter)
    });
    letters.collect()
}

/// FNV-1a, because the standard hasher gives different numbers in every run.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
