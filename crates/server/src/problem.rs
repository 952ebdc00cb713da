//! Errors as JSON problems (RFC 9457), with the field or the check that failed and the way to fix it.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use windlass_api::ClientError;
use windlass_core::log::LogError;

use crate::routes::parameter;

/// An error of a request.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Status code of the answer.
    pub(crate) status: u16,
    /// Short name of the problem, for programs.
    pub(crate) title: &'static str,
    /// Description for people.
    pub(crate) detail: String,
    /// Field, query parameter or part of the path that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Box<str>>,
    /// Check that refused the request: `peer`, `host`, `origin`, `credential`, `scope`, `content_type`, `header`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<&'static str>,
    /// Command or change that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<Box<str>>,
    /// Name of the client that answered first, for a question that has been answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<Box<str>>,
    /// The same error for a front end in another process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) error: Option<Box<ClientError>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            title,
            detail: detail.into(),
            field: None,
            check: None,
            fix: None,
            by: None,
            error: None,
        }
    }

    /// A value that cannot be used.
    pub(crate) fn field(field: impl Into<Box<str>>, detail: impl Into<String>) -> Self {
        let field = field.into();
        let mut problem = Self::new(StatusCode::BAD_REQUEST, "bad_field", detail);
        problem.field = Some(field);
        problem
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub(crate) fn conflict(title: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, title, detail)
    }

    /// A check that refused the request.
    pub(crate) fn refused(status: StatusCode, check: &'static str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(status, "refused", detail);
        problem.check = Some(check);
        problem
    }

    pub(crate) fn fixed_by(mut self, fix: impl Into<Box<str>>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, text).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = HeaderValue::from_static("60");
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        let detail = error.to_string();
        let mut problem = match &error {
            ClientError::Unknown(_) => Self::not_found(detail),
            ClientError::Busy(_) => Self::conflict("busy", detail),
            ClientError::CommandBusy { .. } => Self::conflict("command_busy", detail),
            ClientError::Closed(_) => Self::conflict("closed", detail),
            ClientError::QueueFull(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", detail),
            ClientError::Empty => Self::field("parts", detail),
            ClientError::CommandUsage(_) => Self::field("line", detail),
            ClientError::Command(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "command_failed", detail),
            ClientError::Setup(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "setup", detail),
            ClientError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", detail),
        };
        problem.error = Some(Box::new(error));
        problem
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        let detail = error.to_string();
        match error {
            LogError::Unknown(_) => Self::not_found(detail),
            LogError::Busy { .. } | LogError::Lost(_) => Self::conflict("busy", detail),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", detail),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let (name, why) = parameter(&rejection.body_text());
        Self::field(name, why)
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "bad_body", rejection.body_text())
    }
}
