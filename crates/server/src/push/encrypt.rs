//! Encryption of messages for a browser: RFC 8291, with the content coding `aes128gcm` of RFC 8188.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// Size of a record. A message is one record.
const RECORD: u32 = 4096;
/// Messages are padded to a multiple of this, so that their length tells nothing.
const BLOCK: usize = 256;
/// Length of an uncompressed point on P-256.
const POINT: usize = 65;

/// A browser that messages are encrypted for.
pub(super) struct Recipient {
    public: Vec<u8>,
    secret: Vec<u8>,
}

/// Number of bytes that a key derivation returns.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derived<const N: usize>(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Option<[u8; N]> {
    let mut key = [0; N];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let expanded = extracted.expand(info, Length(N)).ok()?;
    expanded.fill(&mut key).ok()?;
    Some(key)
}

impl Recipient {
    /// Takes the public key and the secret of a browser. The error names the wrong one.
    pub(super) fn new(public: Vec<u8>, secret: Vec<u8>) -> Result<Self, &'static str> {
        if secret.len() != 16 {
            return Err("keys.auth");
        }
        let recipient = Self { public, secret };
        // A point that is not on the curve is found here, and not when there is news.
        match recipient.encrypt(b"") {
            Some(_) => Ok(recipient),
            None => Err("keys.p256dh"),
        }
    }

    /// Encrypts a message. `None` if the key of the browser is not a point on the curve, or the message is too long.
    pub(super) fn encrypt(&self, message: &[u8]) -> Option<Vec<u8>> {
        if self.public.len() != POINT {
            return None;
        }
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).ok()?;
        let public = own.compute_public_key().ok()?;
        let mut salt = [0; 16];
        random.fill(&mut salt).ok()?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, &self.public);
        let info: [&[u8]; 3] = [b"WebPush: info\0", &self.public, public.as_ref()];
        let shared = agree_ephemeral(own, &theirs, |shared| derived::<32>(&self.secret, shared, &info));
        let shared = shared.ok().flatten()?;
        let key: [u8; 16] = derived(&salt, &shared, &[b"Content-Encoding: aes128gcm\0"])?;
        let nonce: [u8; 12] = derived(&salt, &shared, &[b"Content-Encoding: nonce\0"])?;

        let mut record = message.to_vec();
        // Ends the only record; zeros after it are padding.
        record.push(2);
        record.resize(record.len().next_multiple_of(BLOCK), 0);
        if record.len() + AES_128_GCM.tag_len() > RECORD as usize {
            return None;
        }
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        let nonce = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)
            .ok()?;

        let mut body = salt.to_vec();
        body.extend_from_slice(&RECORD.to_be_bytes());
        body.push(u8::try_from(public.as_ref().len()).ok()?);
        body.extend_from_slice(public.as_ref());
        body.append(&mut record);
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WEB-6: what is wrong with the keys of a browser is known when it subscribes.
    #[test]
    fn wrong_keys_are_named() {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).unwrap();
        let public = own.compute_public_key().unwrap().as_ref().to_vec();
        let wrong = |public: Vec<u8>, secret: usize| Recipient::new(public, vec![7; secret]).err();
        assert_eq!(wrong(public.clone(), 16), None);
        assert_eq!(wrong(public.clone(), 15), Some("keys.auth"));
        assert_eq!(wrong(vec![4; POINT], 16), Some("keys.p256dh"));
        assert_eq!(wrong(public[..64].to_vec(), 16), Some("keys.p256dh"));
        assert_eq!(wrong(Vec::new(), 16), Some("keys.p256dh"));
    }

    /// WEB-6: messages of different lengths look alike, and a message that does not fit is refused.
    #[test]
    fn lengths_tell_nothing() {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).unwrap();
        let public = own.compute_public_key().unwrap().as_ref().to_vec();
        let recipient = Recipient::new(public, vec![7; 16]).ok().unwrap();
        let length = |length: usize| recipient.encrypt(&vec![b'x'; length]).map(|body| body.len());
        assert_eq!(length(1), length(200));
        assert_eq!(length(1), Some(16 + 4 + 1 + POINT + BLOCK + 16));
        assert_eq!(length(4096), None);
    }
}
