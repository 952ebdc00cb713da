//! Proof to a push service that a message comes from this server: RFC 8292.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

/// Time a proof is valid, in seconds. The specification allows a day.
pub(super) const TERM: u64 = 12 * 60 * 60;

/// The server's key.
pub(super) struct VapidKey(EcdsaKeyPair);

impl VapidKey {
    /// Makes a key. Returns its PKCS #8 form as well.
    pub(super) fn generate() -> Option<(Self, Vec<u8>)> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
        let key = Self::read(pkcs8.as_ref())?;
        Some((key, pkcs8.as_ref().to_vec()))
    }

    /// Reads a key in PKCS #8 form.
    pub(super) fn read(pkcs8: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random);
        pair.ok().map(Self)
    }

    /// Returns the public key as an uncompressed point.
    pub(super) fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// Returns the value of the header `Authorization` for a push service.
    pub(super) fn authorization(&self, origin: &str, contact: &str, expires: u64) -> Option<String> {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({ "typ": "JWT", "alg": "ES256" }));
        let claims = part(json!({ "aud": origin, "exp": expires, "sub": contact }));
        let signed = format!("{header}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).ok()?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        let public = URL_SAFE_NO_PAD.encode(self.public());
        Some(format!("vapid t={signed}.{signature}, k={public}"))
    }
}
