//! Vectors of texts: the port, the form in which they are stored, and the local model.

mod minilm;
mod wheel;
mod wordpiece;

use async_trait::async_trait;
use windlass_core::log::{LogError, UnitVector};

pub use self::minilm::{MINILM_MODEL, MiniLm};
pub use self::wheel::{WHEEL_NAME, WHEEL_SHA256, WHEEL_VERSION, convert_wheel};

/// Makes vectors of texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Name of the model. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// Returns false as long as nothing is set up, which is not a failure: search goes by words then.
    fn is_available(&self) -> bool {
        true
    }

    /// Returns one vector of length 1 per text. Must not block an async thread, and must end by itself.
    ///
    /// # Errors
    /// Fails with the reason if there is no vector for each text.
    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Purpose of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// It is kept with a unit. The whole text counts.
    Unit,
    /// A search waits for it. A long question may be cut, because a turn waits.
    Question,
}

/// Reason there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The file of the model cannot be used.
    #[error("{0}; `windlass memory setup` writes a new one")]
    Model(String),
    /// The server does not answer, or not as expected.
    #[error("the embedding server: {0}")]
    Server(String),
    /// The package is not the expected one.
    #[error("{0}")]
    Package(String),
    /// The store failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Returns a vector in the form in which it is stored: one byte per component, and its sign as one bit.
pub(crate) fn pack(unit: u64, vector: &[f32]) -> UnitVector {
    let most = vector
        .iter()
        .fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
    let scale = most / 127.0;
    let mut bytes = scale.to_le_bytes().to_vec();
    bytes.extend(
        vector
            .iter()
            .map(|value| ((value / scale).round() as i8).cast_unsigned()),
    );
    UnitVector {
        unit,
        sketch: signs(vector),
        vector: bytes,
    }
}

fn signs(vector: &[f32]) -> Vec<u8> {
    let byte = |values: &[f32]| {
        let bits = values.iter().enumerate();
        bits.fold(0u8, |byte, (place, value)| {
            byte | (u8::from(*value > 0.0) << place)
        })
    };
    vector.chunks(8).map(byte).collect()
}

/// Returns the cosine of a vector and a stored one; 0 if they do not fit.
pub(crate) fn cosine(vector: &[f32], stored: &[u8]) -> f32 {
    let Some((scale, bytes)) = stored.split_first_chunk::<4>() else {
        return 0.0;
    };
    if bytes.len() != vector.len() {
        return 0.0;
    }
    let sum: f32 = vector
        .iter()
        .zip(bytes)
        .map(|(a, b)| a * f32::from(b.cast_signed()))
        .sum();
    sum * f32::from_le_bytes(*scale)
}

/// Signs of the vectors of a scope, in memory, for a first selection.
pub(crate) struct Sketches {
    units: Vec<u64>,
    /// The signs of each unit, one after the other.
    bits: Vec<u64>,
    width: usize,
}

impl Sketches {
    pub(crate) fn new(rows: Vec<(u64, Vec<u8>)>) -> Self {
        let width = rows.first().map_or(0, |(_, sketch)| sketch.len().div_ceil(8));
        let (mut units, mut bits) = (
            Vec::with_capacity(rows.len()),
            Vec::with_capacity(rows.len() * width),
        );
        for (unit, sketch) in rows {
            if sketch.len().div_ceil(8) == width {
                units.push(unit);
                bits.extend(wide(&sketch));
            }
        }
        Self { units, bits, width }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns the units whose signs differ least from those of a vector, with the number of differences.
    pub(crate) fn nearest(&self, vector: &[f32], most: usize) -> Vec<(u64, u32)> {
        let asked = wide(&signs(vector));
        if self.width == 0 || asked.len() != self.width || most == 0 {
            return Vec::new();
        }
        let distance =
            |bits: &[u64]| -> u32 { bits.iter().zip(&asked).map(|(a, b)| (a ^ b).count_ones()).sum() };
        let rows = self.units.iter().zip(self.bits.chunks_exact(self.width));
        let mut all: Vec<(u64, u32)> = rows.map(|(unit, bits)| (*unit, distance(bits))).collect();
        if all.len() > most {
            all.select_nth_unstable_by_key(most - 1, |(_, distance)| *distance);
            all.truncate(most);
        }
        all
    }
}

fn wide(sketch: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |word, byte| (word << 8) | u64::from(*byte))
    };
    sketch.chunks(8).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7: a stored vector gives the same order as the original, and one of another size is never compared.
    #[test]
    fn stored_vectors_keep_their_meaning() {
        let a: Vec<f32> = (0..384).map(|i| ((i * 7 % 13) as f32 - 6.0) / 73.0).collect();
        let b: Vec<f32> = a.iter().map(|value| -value).collect();
        let exact: f32 = a.iter().map(|value| value * value).sum();
        assert!((cosine(&a, &pack(1, &a).vector) - exact).abs() < 0.01);
        assert!(cosine(&b, &pack(1, &a).vector) < 0.0);
        assert_eq!(cosine(&a[..10], &pack(1, &a).vector), 0.0);
        assert_eq!(cosine(&a, &[1, 2]), 0.0);
        let rows = vec![
            (1, pack(1, &a).sketch),
            (2, pack(2, &b).sketch),
            (3, vec![1, 2, 3]),
        ];
        let sketches = Sketches::new(rows);
        assert_eq!(sketches.nearest(&a, 1), [(1, 0)]);
        assert!(sketches.nearest(&a[..10], 1).is_empty());
    }
}
