//! Wire bytes kept beside the value they encode.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Remembers the encoded form of an immutable value, one per wire.
///
/// This is what makes the cost of a request grow with what is new: a message that was sent before is
/// bytes, not work. A clone starts empty, because a clone is made in order to be changed.
#[derive(Default)]
pub struct Memo(Mutex<Vec<(Arc<str>, Bytes)>>);

impl Memo {
    /// The bytes under `key`, made by `encode` the first time.
    pub fn get_or_encode(&self, key: &Arc<str>, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = kept
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, key) || known == key)
        {
            return bytes.clone();
        }
        let bytes = encode();
        kept.push((Arc::clone(key), bytes.clone()));
        bytes
    }
}

impl Clone for Memo {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Memo {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memo")
    }
}
