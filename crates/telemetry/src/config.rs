//! Settings of the export, from OpenTelemetry's standard variables and the user's settings.

use std::time::Duration;

use crate::otlp::{Encoding, Resource};

/// Time limit of a request if no variable sets one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time limit of a request.
const MAX_TIMEOUT_MS: u64 = 60_000;

/// Destination and extent of the export.
#[derive(Clone, PartialEq)]
pub struct ExportConfig {
    /// URL for traces; `None` exports none.
    pub traces: Option<String>,
    /// URL for metrics; `None` exports none.
    pub metrics: Option<String>,
    /// Encoding of requests.
    pub encoding: Encoding,
    /// Headers of requests. They may contain keys.
    pub headers: Vec<(String, String)>,
    /// Time limit of a request.
    pub timeout: Duration,
    /// Description of this process.
    pub resource: Resource,
    /// True to include messages, arguments and results.
    pub content: bool,
    /// True to count metrics also under the newer names of the conventions.
    pub has_new_names: bool,
}

impl std::fmt::Debug for ExportConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportConfig")
            .field("traces", &self.traces)
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

/// A variable or setting with an unusable value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct ExportConfigError {
    /// Name of the variable or setting.
    pub name: String,
    /// Description of what is wrong, and what would be right.
    pub message: String,
}

impl ExportConfig {
    /// Reads the variables. `endpoint` and `content` are the user's settings; variables take precedence.
    ///
    /// # Errors
    /// Names the variable or setting that cannot be used.
    pub fn read(
        var: &dyn Fn(&str) -> Option<String>,
        endpoint: Option<&str>,
        content: bool,
    ) -> Result<Self, ExportConfigError> {
        let base = match var("OTEL_EXPORTER_OTLP_ENDPOINT") {
            Some(url) => Some(("OTEL_EXPORTER_OTLP_ENDPOINT", url)),
            None => endpoint.map(|url| ("telemetry.endpoint", url.to_owned())),
        };
        let is_off = var("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let url = |signal: &str, path: &str| -> Result<Option<String>, ExportConfigError> {
            let is_none = var(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|text| text == "none");
            if is_off || is_none {
                return Ok(None);
            }
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            match (var(&own), &base) {
                (Some(url), _) => checked(&own, url).map(Some),
                (None, Some((name, url))) => {
                    checked(name, format!("{}/v1/{path}", url.trim_end_matches('/'))).map(Some)
                }
                (None, None) => Ok(None),
            }
        };
        Ok(Self {
            traces: url("TRACES", "traces")?,
            metrics: url("METRICS", "metrics")?,
            encoding: encoding(var)?,
            headers: headers(var)?,
            timeout: timeout(var)?,
            resource: Resource::new(
                var("OTEL_SERVICE_NAME").as_deref(),
                var("OTEL_RESOURCE_ATTRIBUTES").as_deref(),
            ),
            content: captured(var, content)?,
            has_new_names: var("OTEL_SEMCONV_STABILITY_OPT_IN").is_some_and(|list| {
                list.split(',')
                    .any(|word| word.trim() == "gen_ai_latest_experimental")
            }),
        })
    }

    /// Returns true if anything is exported.
    pub fn is_on(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some()
    }
}

/// Checks a URL that requests are sent to.
///
/// # Errors
/// Fails if it is not an HTTP URL.
pub fn checked(name: &str, url: String) -> Result<String, ExportConfigError> {
    let parsed = reqwest::Url::parse(&url);
    match parsed {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => Ok(url),
        _ => Err(wrong(
            name,
            "not an address; write the URL of a collector, such as http://localhost:4318",
        )),
    }
}

fn encoding(var: &dyn Fn(&str) -> Option<String>) -> Result<Encoding, ExportConfigError> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
    match var(NAME).as_deref() {
        None | Some("http/protobuf") => Ok(Encoding::Protobuf),
        Some("http/json") => Ok(Encoding::Json),
        Some(_) => Err(wrong(
            NAME,
            "only http/protobuf and http/json are supported; collectors listen for them on port 4318",
        )),
    }
}

fn timeout(var: &dyn Fn(&str) -> Option<String>) -> Result<Duration, ExportConfigError> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
    let Some(text) = var(NAME) else { return Ok(TIMEOUT) };
    match text.trim().parse::<u64>() {
        Ok(milliseconds @ 1..=MAX_TIMEOUT_MS) => Ok(Duration::from_millis(milliseconds)),
        _ => Err(wrong(
            NAME,
            "not a number of milliseconds between 1 and 60000, such as 10000",
        )),
    }
}

fn captured(var: &dyn Fn(&str) -> Option<String>, setting: bool) -> Result<bool, ExportConfigError> {
    const NAME: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let Some(text) = var(NAME) else { return Ok(setting) };
    match text.trim().to_ascii_lowercase().as_str() {
        "span_only" | "span_and_event" | "true" => Ok(true),
        "no_content" | "event_only" | "false" => Ok(false),
        _ => Err(wrong(
            NAME,
            "write NO_CONTENT, SPAN_ONLY, EVENT_ONLY or SPAN_AND_EVENT",
        )),
    }
}

/// Reads `key=value` pairs, percent-encoded as in a URL.
fn headers(var: &dyn Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, ExportConfigError> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    let text = var(NAME).unwrap_or_default();
    let mut headers = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        // The value may be a key, so the message does not repeat it.
        let read = pair.split_once('=').and_then(|(key, value)| {
            let key = key.trim().to_owned();
            let value = decoded(value.trim())?;
            let is_name = reqwest::header::HeaderName::from_bytes(key.as_bytes()).is_ok();
            let is_value = reqwest::header::HeaderValue::from_str(&value).is_ok();
            (is_name && is_value).then_some((key, value))
        });
        let form = "not a list of headers; write name=value pairs, separated by commas";
        headers.push(read.ok_or_else(|| wrong(NAME, form))?);
    }
    Ok(headers)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                let digit = |byte: u8| {
                    char::from(byte)
                        .to_digit(16)
                        .and_then(|digit| u8::try_from(digit).ok())
                };
                bytes.push(digit(high)? << 4 | digit(low)?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn wrong(name: &str, message: &str) -> ExportConfigError {
    ExportConfigError {
        name: name.to_owned(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<ExportConfig, ExportConfigError> {
        let var = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ExportConfig::read(&var, Some("http://settings:4318"), false)
    }

    /// OBS-1: the standard variables take precedence over the settings, and content needs its own switch.
    #[test]
    fn variables_say_what_is_exported() {
        let config = read(&[]).expect("defaults");
        assert_eq!(config.traces.as_deref(), Some("http://settings:4318/v1/traces"));
        assert!(!config.content);
        let config = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/m"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y=2"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY"),
            ("OTEL_SERVICE_NAME", "ci"),
        ])
        .expect("valid");
        assert_eq!(config.traces.as_deref(), Some("http://collector:4318/v1/traces"));
        assert_eq!(config.metrics.as_deref(), Some("https://other/m"));
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(config.headers, [pair("x-key", "a b"), pair("y", "2")]);
        assert!(config.content);
        assert!(!format!("{config:?}").contains("a b"));
        let off = read(&[("OTEL_SDK_DISABLED", "true")]).expect("valid");
        assert!(!off.is_on());
        let one = read(&[("OTEL_METRICS_EXPORTER", "none")]).expect("valid");
        assert!(one.metrics.is_none() && one.traces.is_some());
    }

    /// OBS-1: a bad value is refused with the name of its variable, and never repeated.
    #[test]
    fn bad_variables_are_named() {
        let cases = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2-secret"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "maybe"),
        ];
        for (name, value) in cases {
            let error = read(&[(name, value)]).expect_err(name);
            assert_eq!(error.name, name);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
