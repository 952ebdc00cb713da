//! Signed state that a client carries from one round of a call to the next.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};
use windlass_jsonrpc::RpcError;

/// The call that a client was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Carried {
    pub(crate) session: String,
    /// Tool of the call to the server.
    pub(crate) tool: String,
    /// Call of the turn that waits.
    pub(crate) call: String,
    /// Number of the event that asked.
    pub(crate) seq: u64,
    /// Calls that were denied so far because nobody could be asked.
    pub(crate) denied: Vec<String>,
}

/// The key of this process.
pub(crate) struct Signer(Option<hmac::Key>);

impl Default for Signer {
    fn default() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }
}

impl Signer {
    /// Returns the state as text; `None` if the system has no random numbers.
    pub(crate) fn sign(&self, carried: &Carried) -> Option<String> {
        let key = self.0.as_ref()?;
        let text = serde_json::to_vec(carried).ok()?;
        let tag = hmac::sign(key, &text);
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        Some(format!("{}.{}", encode(&text), encode(tag.as_ref())))
    }

    /// Reads a state that this process signed.
    pub(crate) fn open(&self, state: &str) -> Result<Carried, RpcError> {
        let read = || {
            let (text, tag) = state.split_once('.')?;
            let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
            let (text, tag) = (decode(text)?, decode(tag)?);
            hmac::verify(self.0.as_ref()?, &text, &tag).ok()?;
            serde_json::from_slice(&text).ok()
        };
        read().ok_or_else(|| {
            RpcError::invalid_params("requestState: it is not from this server, or was changed")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MCP-8: a state that was changed, or comes from another process, answers nothing.
    #[test]
    fn a_changed_state_is_refused() {
        let carried = Carried {
            session: "s".to_owned(),
            tool: "start_session".to_owned(),
            call: "c".to_owned(),
            seq: 7,
            denied: Vec::new(),
        };
        let signer = Signer::default();
        let state = signer.sign(&carried).unwrap();
        assert_eq!(signer.open(&state), Ok(carried));
        for wrong in ["", ".", &state.replace('.', "x."), &format!("{state}x")] {
            assert!(signer.open(wrong).is_err(), "{wrong}");
        }
        assert!(Signer::default().open(&state).is_err());
    }
}
