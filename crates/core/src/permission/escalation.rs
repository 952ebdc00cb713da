//! Access beyond the default of a sandboxed command.

use serde::{Deserialize, Serialize};

/// Access that a call needs beyond what every call gets. Only a person, a mode, or a rule that names it may
/// grant it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Escalation {
    /// Network access.
    pub network: bool,
    /// Access to files outside the workspace. Denied paths stay denied.
    pub outside: bool,
    /// SAFE-10: changes of files that other programs run by themselves. Neither a mode nor a rule allows them, only a
    /// person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

impl Escalation {
    /// Returns true if nothing beyond the default is needed.
    pub fn is_none(&self) -> bool {
        !self.network && !self.outside && !self.protected
    }

    /// Returns true if everything in `other` is part of this.
    pub fn includes(self, other: Self) -> bool {
        (self.network || !other.network)
            && (self.outside || !other.outside)
            && (self.protected || !other.protected)
    }

    /// Returns true if both have something in common.
    pub fn overlaps(self, other: Self) -> bool {
        (self.network && other.network) || (self.outside && other.outside)
    }

    /// Returns the words for it in a rule, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let network = self.network.then_some("network");
        network.into_iter().chain(self.outside.then_some("outside"))
    }

    /// Adds the access that a word of a rule names. Returns false if the word names none.
    pub(super) fn add_word(&mut self, word: &str) -> bool {
        match word {
            "network" => self.network = true,
            "outside" => self.outside = true,
            _ => return false,
        }
        true
    }
}
