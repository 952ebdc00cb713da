//! Lists the models of a server.

use reqwest::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use windlass_core::provider::{ProviderError, ProviderErrorKind};

use super::HttpProvider;
use crate::transport::read_body;

/// Maximum size of a model list in bytes. Nobody chooses from a longer one.
const LONGEST_LIST: usize = 1024 * 1024;

/// The model list: under `data`, or under `models` on Gemini's wire.
#[derive(Deserialize)]
struct List {
    #[serde(alias = "models")]
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(alias = "name")]
    id: String,
}

impl HttpProvider {
    /// PROV-7: returns the models the server lists, in its order. Sends one request, without retries, under
    /// the same idle timeout as a reply.
    ///
    /// # Errors
    /// When the request fails or the response is not a model list.
    pub async fn models(&self) -> Result<Vec<String>, ProviderError> {
        let shared = &self.0;
        let mut url = shared.endpoint.url.clone();
        let path = url.path();
        let ends = ["/messages", "/chat/completions", "/responses"];
        let of_model = path
            .strip_suffix(":streamGenerateContent")
            .and_then(|path| path.rsplit_once("/models/"));
        let base = of_model
            .map(|(base, _)| base)
            .or_else(|| ends.iter().find_map(|end| path.strip_suffix(end)));
        let path = format!("{}/models", base.unwrap_or(path));
        url.set_path(&path);
        url.set_query(None);
        let mut headers = shared.endpoint.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let (limits, clock) = (&shared.limits, &*shared.clock);
        let asked = shared.transport.get(url, headers, limits, clock).await;
        let mut response = asked.map_err(|failed| shared.tell(failed.error))?;
        let body = read_body(&mut response, LONGEST_LIST, limits, clock).await;
        let body = body.map_err(|error| shared.tell(error))?;
        let list: List = serde_json::from_slice(&body).map_err(|error| {
            let message = format!("the list of models cannot be read: {error}");
            shared.tell(ProviderError::new(ProviderErrorKind::InvalidRequest, message))
        })?;
        let is_name = |id: &String| !id.is_empty() && !id.contains(|sign: char| sign.is_control());
        Ok(list
            .data
            .into_iter()
            .map(|listed| listed.id.trim_start_matches("models/").to_owned())
            .filter(is_name)
            .collect())
    }
}
