//! all-MiniLM-L6-v2 with weights of one byte: six layers of attention over at most 256 tokens.
//!
//! The file stays in memory as it is, 23 MB, and each matrix in it becomes numbers only while it is used.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, linalg::general_mat_mul, s};

use super::wordpiece::WordPiece;
use super::{EmbedError, EmbedPurpose, Embedder};

/// Sizes of the model.
pub(super) const WIDTH: usize = 384;
pub(super) const INNER: usize = 1_536;
pub(super) const VOCABULARY: usize = 30_522;
pub(super) const POSITIONS: usize = 512;
pub(super) const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;

/// Maximum number of tokens of a text.
const MAX_TOKENS: usize = 256;
/// Maximum number of tokens of a question, so that a turn waits little.
const MAX_QUESTION: usize = 64;

/// First bytes of the file.
pub(super) const MAGIC: &[u8; 8] = b"WLMINI01";

/// Name of the local model, stored with its vectors.
pub const MINILM_MODEL: &str = "minilm-l6-v2-int8";

/// The local model. Cheap to clone.
#[derive(Clone)]
pub struct MiniLm(Arc<Weights>);

struct Weights {
    words: Matrix,
    positions: Matrix,
    kind: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    pieces: WordPiece,
}

/// A matrix of bytes in the file, with one scale per row.
struct Matrix {
    columns: usize,
    scales: Vec<f32>,
    file: Arc<Vec<u8>>,
    place: Range<usize>,
}

struct Linear {
    weights: Matrix,
    bias: Vec<f32>,
}

struct Norm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    first: Norm,
    up: Linear,
    down: Linear,
    second: Norm,
}

impl MiniLm {
    /// Reads a model file.
    ///
    /// # Errors
    /// Fails if the bytes are not a complete model file of this version.
    pub fn read(bytes: Vec<u8>) -> Result<Self, EmbedError> {
        Self::check_start(&bytes)?;
        let body = bytes.get(MAGIC.len()..).unwrap_or_default();
        let (body, sum) = body
            .split_last_chunk::<8>()
            .ok_or_else(|| damaged("is cut off"))?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(damaged("is damaged"));
        }
        let rest = MAGIC.len()..MAGIC.len() + body.len();
        let file = Arc::new(bytes);
        Reader { file, rest }
            .model()
            .map(|weights| Self(Arc::new(weights)))
            .ok_or_else(|| damaged("is cut off"))
    }

    /// Checks the first bytes of a model file, at least eight, which costs nothing.
    ///
    /// # Errors
    /// Fails if they are of another kind of file.
    pub fn check_start(bytes: &[u8]) -> Result<(), EmbedError> {
        match bytes.starts_with(MAGIC) {
            true => Ok(()),
            false => Err(damaged("is of another kind")),
        }
    }

    fn vector(&self, text: &str, most: usize) -> Vec<f32> {
        let weights = &*self.0;
        let tokens = weights.pieces.tokens(text, most);
        let count = tokens.len();
        let mut state = Array2::<f32>::zeros((count, WIDTH));
        for (place, token) in tokens.iter().enumerate() {
            let mut row = state.row_mut(place);
            let row = row.as_slice_mut().unwrap_or_default();
            weights.words.add_row(*token, row);
            weights.positions.add_row(place, row);
            for (value, kind) in row.iter_mut().zip(&weights.kind) {
                *value += kind;
            }
        }
        weights.norm.apply(&mut state);
        let mut scratch = vec![0.0; INNER * WIDTH];
        for layer in &weights.layers {
            layer.apply(&mut state, &mut scratch);
        }
        let mut vector = state.sum_axis(Axis(0)).to_vec();
        let length = vector
            .iter()
            .map(|value| value * value)
            .sum::<f32>()
            .sqrt()
            .max(f32::MIN_POSITIVE);
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }
}

#[async_trait]
impl Embedder for MiniLm {
    fn model(&self) -> &str {
        MINILM_MODEL
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (model, texts) = (self.clone(), texts.to_vec());
        let most = match purpose {
            EmbedPurpose::Question => MAX_QUESTION,
            EmbedPurpose::Unit => MAX_TOKENS,
        };
        let work = move || texts.iter().map(|text| model.vector(text, most)).collect();
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| EmbedError::Model(error.to_string()))
    }
}

impl Matrix {
    fn bytes(&self) -> &[u8] {
        self.file.get(self.place.clone()).unwrap_or_default()
    }

    /// Adds a row to a vector.
    fn add_row(&self, row: usize, vector: &mut [f32]) {
        let scale = self.scales.get(row).copied().unwrap_or_default();
        let bytes = self
            .bytes()
            .get(row * self.columns..(row + 1) * self.columns)
            .unwrap_or_default();
        for (value, byte) in vector.iter_mut().zip(bytes) {
            *value += f32::from(byte.cast_signed()) * scale;
        }
    }

    /// Writes the matrix as numbers.
    fn unpack(&self, numbers: &mut [f32]) {
        let rows = self.bytes().chunks_exact(self.columns).zip(&self.scales);
        for ((bytes, scale), numbers) in rows.zip(numbers.chunks_exact_mut(self.columns)) {
            for (number, byte) in numbers.iter_mut().zip(bytes) {
                *number = f32::from(byte.cast_signed()) * scale;
            }
        }
    }
}

impl Linear {
    fn apply(&self, input: &ArrayView2<'_, f32>, scratch: &mut [f32]) -> Array2<f32> {
        let (rows, columns) = (self.bias.len(), self.weights.columns);
        self.weights.unpack(scratch);
        let mut output = Array2::<f32>::zeros((input.nrows(), rows));
        for mut row in output.rows_mut() {
            for (value, bias) in row.iter_mut().zip(&self.bias) {
                *value = *bias;
            }
        }
        let numbers = scratch.get(..rows * columns).unwrap_or_default();
        if let Ok(weights) = ArrayView2::from_shape((rows, columns), numbers) {
            general_mat_mul(1.0, input, &weights.t(), 1.0, &mut output);
        }
        output
    }
}

impl Norm {
    fn apply(&self, state: &mut Array2<f32>) {
        for mut row in state.rows_mut() {
            let count = WIDTH as f32;
            let mean = row.sum() / count;
            let spread = row
                .iter()
                .map(|value| (value - mean) * (value - mean))
                .sum::<f32>()
                / count;
            let scale = 1.0 / (spread + 1e-12).sqrt();
            for ((value, gain), bias) in row.iter_mut().zip(&self.gain).zip(&self.bias) {
                *value = (*value - mean) * scale * gain + bias;
            }
        }
    }
}

impl Layer {
    fn apply(&self, state: &mut Array2<f32>, scratch: &mut [f32]) {
        let input = state.view();
        let query = self.query.apply(&input, scratch);
        let key = self.key.apply(&input, scratch);
        let value = self.value.apply(&input, scratch);
        let mut mixed = Array2::<f32>::zeros((state.nrows(), WIDTH));
        for head in 0..HEADS {
            let part = s![.., head * HEAD..(head + 1) * HEAD];
            attend(
                query.slice(part),
                key.slice(part),
                value.slice(part),
                mixed.slice_mut(part),
            );
        }
        *state += &self.output.apply(&mixed.view(), scratch);
        self.first.apply(state);
        let mut inner = self.up.apply(&state.view(), scratch);
        inner.mapv_inplace(gelu);
        *state += &self.down.apply(&inner.view(), scratch);
        self.second.apply(state);
    }
}

fn attend(
    query: ArrayView2<'_, f32>,
    key: ArrayView2<'_, f32>,
    value: ArrayView2<'_, f32>,
    mut mixed: ArrayViewMut2<'_, f32>,
) {
    let count = query.nrows();
    let mut scores = Array2::<f32>::zeros((count, count));
    general_mat_mul(1.0 / (HEAD as f32).sqrt(), &query, &key.t(), 0.0, &mut scores);
    for mut row in scores.rows_mut() {
        let most = row.iter().copied().fold(f32::MIN, f32::max);
        row.mapv_inplace(|value| (value - most).exp());
        let sum = row.sum();
        row.mapv_inplace(|value| value / sum);
    }
    general_mat_mul(1.0, &scores, &value, 0.0, &mut mixed);
}

/// The activation of the model, with an approximation of the error function that is exact to seven digits.
fn gelu(value: f32) -> f32 {
    let scaled = value / std::f32::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * scaled.abs());
    let series = ((((1.061_405_4 * t - 1.453_152_1) * t) + 1.421_413_8) * t - 0.284_496_74) * t + 0.254_829_6;
    let erf = 1.0 - series * t * (-scaled * scaled).exp();
    0.5 * value * (1.0 + if scaled < 0.0 { -erf } else { erf })
}

fn damaged(what: &str) -> EmbedError {
    EmbedError::Model(format!("the model file {what}"))
}

/// Returns a checksum that notices damage.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(5);
    let mut chunks = bytes.chunks_exact(8);
    let sum = chunks.by_ref().fold(0xCBF2_9CE4_8422_2325, |sum, chunk| {
        mix(sum, u64::from_le_bytes(chunk.try_into().unwrap_or_default()))
    });
    chunks
        .remainder()
        .iter()
        .fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

struct Reader {
    file: Arc<Vec<u8>>,
    rest: Range<usize>,
}

impl Reader {
    fn model(&mut self) -> Option<Weights> {
        let words = self.matrix(VOCABULARY, WIDTH)?;
        let positions = self.matrix(POSITIONS, WIDTH)?;
        let kind = self.numbers(WIDTH)?;
        let norm = self.norm()?;
        let mut layers = Vec::with_capacity(LAYERS);
        for _ in 0..LAYERS {
            layers.push(Layer {
                query: self.linear(WIDTH, WIDTH)?,
                key: self.linear(WIDTH, WIDTH)?,
                value: self.linear(WIDTH, WIDTH)?,
                output: self.linear(WIDTH, WIDTH)?,
                first: self.norm()?,
                up: self.linear(INNER, WIDTH)?,
                down: self.linear(WIDTH, INNER)?,
                second: self.norm()?,
            });
        }
        let vocabulary = std::str::from_utf8(self.file.get(self.rest.clone())?).ok()?;
        let pieces = WordPiece::new(vocabulary);
        Some(Weights {
            words,
            positions,
            kind,
            norm,
            layers,
            pieces,
        })
    }

    fn take(&mut self, count: usize) -> Option<Range<usize>> {
        let end = self.rest.start.checked_add(count)?;
        let taken = self.rest.start..end;
        self.rest.start = end;
        (end <= self.rest.end).then_some(taken)
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<f32>> {
        let place = self.take(count * 4)?;
        let bytes = self.file.get(place)?.chunks_exact(4);
        Some(
            bytes
                .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default()))
                .collect(),
        )
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Option<Matrix> {
        let scales = self.numbers(rows)?;
        Some(Matrix {
            columns,
            scales,
            file: Arc::clone(&self.file),
            place: self.take(rows * columns)?,
        })
    }

    fn linear(&mut self, rows: usize, columns: usize) -> Option<Linear> {
        Some(Linear {
            weights: self.matrix(rows, columns)?,
            bias: self.numbers(rows)?,
        })
    }

    fn norm(&mut self) -> Option<Norm> {
        Some(Norm {
            gain: self.numbers(WIDTH)?,
            bias: self.numbers(WIDTH)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7: matrices of bytes multiply like the numbers they stand for, and attention is a mean of the values weighted by
    /// the similarity of query and key.
    #[test]
    fn layers_compute_what_they_should() {
        let linear = Linear {
            weights: Matrix {
                columns: 3,
                scales: vec![0.5, 2.0],
                file: Arc::new([9, 2, -4, 6, 1, 0, -1_i8].map(i8::cast_unsigned).to_vec()),
                place: 1..7,
            },
            bias: vec![0.25, -1.0],
        };
        let input = ndarray::arr2(&[[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]);
        let output = linear.apply(&input.view(), &mut [0.0; 6]);
        assert_eq!(output, ndarray::arr2(&[[6.25, -5.0], [-1.75, -1.0]]));

        let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
        let (query, key) = (Array2::<f32>::ones((2, HEAD)), Array2::<f32>::zeros((2, HEAD)));
        let value = Array2::from_shape_fn((2, HEAD), |(row, _)| if row == 0 { 1.0 } else { 3.0 });
        let mut mixed = Array2::<f32>::zeros((2, HEAD));
        attend(query.view(), key.view(), value.view(), mixed.view_mut());
        assert!(mixed.iter().all(|mean| near(*mean, 2.0)), "{mixed}");

        // Values of the activation and of the norm, computed elsewhere.
        for (value, expected) in [(1.0, 0.841_345), (-1.0, -0.158_655), (3.0, 2.995_95)] {
            assert!(near(gelu(value), expected), "{}", gelu(value));
        }
        let norm = Norm {
            gain: vec![2.0; WIDTH],
            bias: vec![0.5; WIDTH],
        };
        let mut state =
            Array2::from_shape_fn((1, WIDTH), |(_, column)| if column % 2 == 0 { 1.0 } else { 3.0 });
        norm.apply(&mut state);
        assert!(
            near(state[[0, 0]], -1.5) && near(state[[0, 1]], 2.5),
            "{}",
            state[[0, 0]]
        );
    }

    /// MEM-7: a file that is foreign, cut off or damaged is refused with the reason.
    #[test]
    fn damaged_files_are_refused() {
        let refused = |bytes: &[u8]| {
            MiniLm::read(bytes.to_vec())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(refused(b"PK\x03\x04").contains("is of another kind"));
        assert!(refused(MAGIC).contains("is cut off"));
        let mut file = MAGIC.to_vec();
        file.extend([7; 100]);
        assert!(refused(&file).contains("is damaged"), "{}", refused(&file));
        let sum = checksum(&[7; 100]);
        file.extend(sum.to_le_bytes());
        assert!(refused(&file).contains("is cut off"));
    }
}
