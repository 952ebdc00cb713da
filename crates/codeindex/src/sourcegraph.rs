//! A Sourcegraph-compatible server as the second source of `code_search`, over its GraphQL interface.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use crate::tool::{RemoteHit, RemoteSearch};

/// Time limit of a request.
const LIMIT: Duration = Duration::from_secs(15);
/// Maximum size of an answer.
const MAX_ANSWER: usize = 4 << 20;
/// Maximum number of lines of one file.
const MAX_LINES: usize = 12;
const MAX_LINE: usize = 200;

const QUERY: &str = "query Search($query: String!) { search(query: $query, version: V3, patternType: keyword) { results \
                     { results { __typename ... on FileMatch { repository { name } file { path } \
                     lineMatches { preview lineNumber } } } alert { title description } } } }";

/// A server that answers like Sourcegraph.
pub struct Sourcegraph {
    address: reqwest::Url,
    host: String,
    token: Option<String>,
    client: reqwest::Client,
}

impl Sourcegraph {
    /// Creates the source for a server at an address such as `https://sourcegraph.example.com`.
    ///
    /// # Errors
    /// Fails with a message for the user if the address cannot be used.
    pub fn new(address: &str, token: Option<String>) -> Result<Self, String> {
        let wrong = |problem: &str| format!("code.sourcegraph_url {address:?} {problem}");
        let url = reqwest::Url::parse(&format!("{}/.api/graphql", address.trim_end_matches('/')));
        let url =
            url.map_err(|_| wrong("is not a URL; write one such as \"https://sourcegraph.example.com\""))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong("must start with https:// or http://"));
        }
        let host = url.host_str().ok_or_else(|| wrong("has no host"))?.to_owned();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LIMIT)
            .build()
            .map_err(|error| format!("cannot set up HTTP: {error}"))?;
        Ok(Self {
            address: url,
            host,
            token,
            client,
        })
    }

    async fn ask(&self, query: &str, files: usize) -> Result<Answer, String> {
        let body = json!({ "query": QUERY, "variables": { "query": format!("{query} count:{files}") } });
        let mut request = self
            .client
            .post(self.address.clone())
            .header("Content-Type", "application/json")
            .body(body.to_string());
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("token {token}"));
        }
        let failed = |error: reqwest::Error| {
            let reason = if error.is_timeout() {
                "did not answer in time"
            } else {
                "cannot be reached"
            };
            format!("The code search server {} {reason}.", self.host)
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let hint = match status.as_u16() {
            401 | 403 => "; it needs a valid access token (code.sourcegraph_key_env)",
            404 => "; there is no /.api/graphql at this address",
            _ => "",
        };
        if !status.is_success() {
            return Err(format!(
                "The code search server {} answered {status}{hint}.",
                self.host
            ));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if bytes.len() + piece.len() > MAX_ANSWER {
                return Err(format!(
                    "The answer of the code search server {} is too long.",
                    self.host
                ));
            }
            bytes.extend_from_slice(&piece);
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            format!(
                "The code search server {} did not answer as Sourcegraph does: {error}.",
                self.host
            )
        })
    }
}

#[async_trait]
impl RemoteSearch for Sourcegraph {
    fn host(&self) -> &str {
        &self.host
    }

    async fn search(&self, query: &str, files: usize) -> Result<Vec<RemoteHit>, String> {
        // A line break would end the query.
        let query = query.split_whitespace().collect::<Vec<_>>().join(" ");
        let answer = self.ask(&query, files).await?;
        if let Some(error) = answer.errors.first() {
            return Err(format!(
                "The code search server {} refused: {}",
                self.host, error.message
            ));
        }
        let results = answer
            .data
            .and_then(|data| data.search)
            .map(|search| search.results.results);
        let hits = results.unwrap_or_default().into_iter().filter_map(Match::hit);
        Ok(hits.take(files).collect())
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

#[derive(Deserialize)]
struct Data {
    search: Option<Search>,
}

#[derive(Deserialize)]
struct Search {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    results: Vec<Match>,
}

/// A result; those of other types have no file.
#[derive(Deserialize)]
struct Match {
    repository: Option<Repository>,
    file: Option<File>,
    #[serde(default, rename = "lineMatches")]
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
}

#[derive(Deserialize)]
struct File {
    path: String,
}

#[derive(Deserialize)]
struct Line {
    preview: String,
    #[serde(rename = "lineNumber")]
    number: u32,
}

impl Match {
    fn hit(self) -> Option<RemoteHit> {
        let path = self.file?.path;
        let path = match self.repository {
            Some(repository) => format!("{}/{path}", repository.name),
            None => path,
        };
        let line = |line: Line| {
            let text: String = line
                .preview
                .chars()
                .filter(|sign| !sign.is_control())
                .take(MAX_LINE)
                .collect();
            // Sourcegraph counts lines from 0.
            (line.number.saturating_add(1), text)
        };
        Some(RemoteHit {
            path,
            lines: self.lines.into_iter().take(MAX_LINES).map(line).collect(),
        })
    }
}
