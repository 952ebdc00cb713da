//! Vectors from a server that speaks the embeddings interface of OpenAI, and files from a package index.

use std::time::Duration;

use reqwest::{Client, Url};
use serde::Deserialize;

use crate::key::Secret;
use crate::transport::install_tls;

/// Maximum size of an answer with vectors.
const MAX_ANSWER: usize = 32 << 20;

/// A server of embeddings.
#[derive(Debug, Clone)]
pub struct EmbeddingServer {
    client: Client,
    url: Url,
    model: String,
    key: Option<Secret>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingServer {
    /// Describes a server by its address, with or without `/v1/embeddings` at the end.
    ///
    /// # Errors
    /// Fails with the reason if the address cannot be used.
    pub fn new(address: &str, model: &str, key: Option<Secret>, limit: Duration) -> Result<Self, String> {
        let base = address.trim_end_matches('/');
        let full = match () {
            () if base.ends_with("/embeddings") => base.to_owned(),
            () if base.ends_with("/v1") => format!("{base}/embeddings"),
            () => format!("{base}/v1/embeddings"),
        };
        Ok(Self {
            client: client(limit)?,
            url: Url::parse(&full).map_err(|error| format!("{address}: {error}"))?,
            model: model.to_owned(),
            key,
        })
    }

    /// Returns one vector per text.
    ///
    /// # Errors
    /// Fails with the reason, without the key.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let body = serde_json::json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let mut request = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let answer = request
            .body(body.to_string())
            .send()
            .await
            .map_err(|error| told(&error))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(format!("it answered with status {}", status.as_u16()));
        }
        let bytes = limited(answer, MAX_ANSWER).await?;
        let mut answer: Answer =
            serde_json::from_slice(&bytes).map_err(|error| format!("its answer cannot be read: {error}"))?;
        answer.data.sort_by_key(|item| item.index);
        let vectors: Vec<Vec<f32>> = answer.data.into_iter().map(|item| item.embedding).collect();
        let width = vectors.first().map_or(0, Vec::len);
        let is_even = vectors
            .iter()
            .all(|vector| vector.len() == width && vector.iter().all(|value| value.is_finite()));
        if vectors.len() != texts.len() || width == 0 || !is_even {
            return Err(format!(
                "it returned {} vectors for {} texts",
                vectors.len(),
                texts.len()
            ));
        }
        Ok(vectors)
    }
}

/// Downloads a file of at most `most` bytes.
///
/// # Errors
/// Fails with the reason.
pub async fn download(address: &str, most: usize, limit: Duration) -> Result<Vec<u8>, String> {
    let url = Url::parse(address).map_err(|error| format!("{address}: {error}"))?;
    let answer = client(limit)?
        .get(url)
        .send()
        .await
        .map_err(|error| told(&error))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("{address}: status {}", status.as_u16()));
    }
    limited(answer, most).await
}

/// Returns the address of a file in a package index (PEP 503), relative links resolved.
///
/// # Errors
/// Fails with the reason if the index has no such file.
pub async fn indexed_file(index: &str, package: &str, file: &str, limit: Duration) -> Result<String, String> {
    let page = format!("{}/{package}/", index.trim_end_matches('/'));
    let text = download(&page, 8 << 20, limit).await?;
    let text = String::from_utf8_lossy(&text);
    let base = Url::parse(&page).map_err(|error| error.to_string())?;
    let links = text
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let mut links = links.map(|link| link.split('#').next().unwrap_or_default());
    let link = links
        .find(|link| link.ends_with(file))
        .ok_or_else(|| format!("{page} has no {file}"))?;
    base.join(link)
        .map(String::from)
        .map_err(|error| error.to_string())
}

fn client(limit: Duration) -> Result<Client, String> {
    install_tls();
    let client = Client::builder()
        .timeout(limit)
        .connect_timeout(limit.min(Duration::from_secs(10)));
    client.build().map_err(|error| told(&error))
}

async fn limited(mut answer: reqwest::Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| told(&error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            return Err(format!("the answer has more than {most} bytes"));
        }
    }
    Ok(bytes)
}

/// Describes a failure with its innermost cause.
fn told(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}
