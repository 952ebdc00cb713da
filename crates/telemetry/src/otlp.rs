//! OTLP: spans and metrics as protobuf and as JSON.
//!
//! Only the messages that are sent are here, written by hand: an encoder for six messages is smaller than a
//! generated one for all. Tests decode its output with the generated types.

mod json;
mod protobuf;

use crate::metrics::MetricsSnapshot;
use crate::span::{AttributeValue, TraceSpan};

/// Description of the process that the spans and metrics come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Attributes.
    pub attributes: Vec<(String, AttributeValue)>,
}

impl Resource {
    /// Describes this program. `name` replaces its name, and `more` are further attributes, each as
    /// `key=value`, separated by commas.
    pub fn new(name: Option<&str>, more: Option<&str>) -> Self {
        let mut attributes = vec![
            (
                "service.name".to_owned(),
                AttributeValue::from(name.unwrap_or("windlass")),
            ),
            (
                "service.version".to_owned(),
                AttributeValue::from(env!("CARGO_PKG_VERSION")),
            ),
        ];
        let pairs = more.unwrap_or_default().split(',').filter_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key.trim().to_owned(), AttributeValue::from(value.trim())))
        });
        for (key, value) in pairs.filter(|(key, _)| !key.is_empty()) {
            match attributes.iter_mut().find(|(known, _)| *known == key) {
                // The variable for the name takes precedence.
                Some((known, _)) if known == "service.name" && name.is_some() => {}
                Some((_, known)) => *known = value,
                None => attributes.push((key, value)),
            }
        }
        Self { attributes }
    }
}

/// Encoding of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Protobuf.
    #[default]
    Protobuf,
    /// JSON.
    Json,
}

impl Encoding {
    /// Returns the content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    /// Encodes spans as the body of a request to `/v1/traces`.
    pub fn traces(self, resource: &Resource, spans: &[TraceSpan]) -> Vec<u8> {
        match self {
            Self::Protobuf => protobuf::traces(resource, spans),
            Self::Json => json::traces(resource, spans).to_string().into_bytes(),
        }
    }

    /// Encodes metrics as the body of a request to `/v1/metrics`.
    pub fn metrics(self, resource: &Resource, metrics: &MetricsSnapshot) -> Vec<u8> {
        match self {
            Self::Protobuf => protobuf::metrics(resource, metrics),
            Self::Json => json::metrics(resource, metrics).to_string().into_bytes(),
        }
    }
}
