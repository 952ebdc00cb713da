//! CTX-1: exact counts for models whose tokenizer is public, and an estimate for all others.
//!
//! A vocabulary takes a tenth of a second and a few megabytes to load, so it is loaded on the first count.

use std::sync::{Arc, LazyLock};

use windlass_core::model::Model;
use windlass_core::tokens::{Estimate, TokenCounter};

/// Returns the counter for a model. Loads nothing.
pub fn counter_for(model: &Model) -> Arc<dyn TokenCounter> {
    match encoding(&model.id) {
        Some(Encoding::O200k) => Arc::new(Exact::clone(&O200K)),
        Some(Encoding::Cl100k) => Arc::new(Exact::clone(&CL100K)),
        None => Arc::new(Estimate),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    O200k,
    Cl100k,
}

/// Picks the encoding by the model's name, ignoring the vendor before it: `openai/gpt-5`,
/// `ft:gpt-4o:team::1`.
fn encoding(model: &str) -> Option<Encoding> {
    const OLD: [&str; 4] = ["gpt-4-", "gpt-3.5", "gpt-35", "text-embedding-3"];
    const NEW: [&str; 8] = [
        "gpt-5", "gpt-4.", "gpt-4o", "gpt-6", "chatgpt-", "codex-", "gpt-oss", "o1",
    ];
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.strip_prefix("ft:").unwrap_or(&name);
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let is_reasoning = name
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    if begins(&NEW) || is_reasoning {
        Some(Encoding::O200k)
    } else if name == "gpt-4" || begins(&OLD) {
        Some(Encoding::Cl100k)
    } else {
        None
    }
}

static O200K: LazyLock<Exact> = LazyLock::new(|| Exact {
    key: Arc::from("o200k_base"),
});
static CL100K: LazyLock<Exact> = LazyLock::new(|| Exact {
    key: Arc::from("cl100k_base"),
});

/// Counts with the vendor's own vocabulary.
#[derive(Debug, Clone)]
struct Exact {
    /// Name of the vocabulary.
    key: Arc<str>,
}

impl TokenCounter for Exact {
    fn key(&self) -> &Arc<str> {
        &self.key
    }

    fn count(&self, text: &str) -> u64 {
        // Loaded by the first call and cached for the process.
        match tiktoken::get_encoding(&self.key) {
            Some(vocabulary) => vocabulary.count(text) as u64,
            None => Estimate.count(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    /// CTX-1: each family has its vocabulary, and models without a public one are estimated.
    #[test]
    fn models_have_their_tokenizer() {
        for (model, key) in [
            ("gpt-5-mini", "o200k_base"),
            ("openai/gpt-4.1", "o200k_base"),
            ("ft:gpt-4o:team::1", "o200k_base"),
            ("o3-pro", "o200k_base"),
            ("gpt-4", "cl100k_base"),
            ("gpt-4-turbo", "cl100k_base"),
            ("gpt-3.5-turbo", "cl100k_base"),
            ("claude-sonnet-4-5", "bytes/4"),
            ("gemini-2.5-pro", "bytes/4"),
            ("opus", "bytes/4"),
            ("", "bytes/4"),
        ] {
            assert_eq!(
                &**counter_for(&registry::lookup(model, &[])).key(),
                key,
                "{model}"
            );
        }
    }

    /// CTX-1: counts with public vocabularies are exact, even for odd texts.
    #[test]
    fn counts_are_exact() {
        let count = |model: &str, text: &str| counter_for(&registry::lookup(model, &[])).count(text);
        for (text, new, old) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("tiktoken is great!", 6, 6),
            ("お誕生日おめでとう", 8, 9),
            ("antidisestablishmentarianism", 6, 6),
            ("2 + 2 = 4", 7, 7),
        ] {
            assert_eq!((count("gpt-5", text), count("gpt-4", text)), (new, old), "{text}");
        }
    }
}
