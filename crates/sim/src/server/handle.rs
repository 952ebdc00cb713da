//! Handles one request, from its bytes to its response.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Shared;
use crate::answer::{Answer, fresh_id};
use crate::brain::Recorded;
use crate::encode::Context;
use crate::fault::{Fault, Refuse};
use crate::log::Logged;
use crate::seen::Seen;
use crate::stream::{self, Step};
use crate::validate;
use crate::wire::{Protocol, Refusal};

/// Maximum body size. Larger bodies are refused with status 413.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// Headers whose values never reach the log.
const SECRET_HEADERS: [&str; 5] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
    "cookie",
];

type Body413 = Result<Bytes, BytesRejection>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let route = |wire: Protocol| {
        post(
            move |State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Body413| async move {
                Exchange {
                    wire,
                    shared,
                    request_id: fresh_id("req_"),
                    address: None,
                }
                .respond(&headers, body)
                .await
            },
        )
    };
    Router::new()
        .route("/v1/messages", route(Protocol::Anthropic))
        .route("/v1/chat/completions", route(Protocol::Chat))
        .route("/v1/responses", route(Protocol::Responses))
        .route("/v1beta/models/{call}", post(gemini))
        .route("/v1/models/{call}", post(gemini))
        .route("/v1beta/models", get(gemini_models))
        .route("/v1/models", get(models))
        .route("/__sim/requests", get(requests))
        .route("/__sim/health", get(health))
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(shared)
}

async fn health() -> Response {
    json_response(StatusCode::OK, &json!({"ok": true}))
}

async fn requests(State(shared): State<Arc<Shared>>) -> Response {
    let requests = shared.log.summaries();
    json_response(StatusCode::OK, &json!({"requests": requests}))
}

/// Lists the models in a form that both vendors' clients can read.
async fn models() -> Response {
    let model = json!({
        "id": "sim-1",
        "type": "model",
        "object": "model",
        "display_name": "Simulated model",
        "created": 1_750_000_000,
        "created_at": "2025-06-15T15:06:40Z",
        "owned_by": "windlass",
    });
    let list = json!({
        "object": "list",
        "data": [model],
        "has_more": false,
        "first_id": "sim-1",
        "last_id": "sim-1",
    });
    json_response(StatusCode::OK, &list)
}

/// Answers a request whose address has the model and the method.
async fn gemini(
    State(shared): State<Arc<Shared>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Body413,
) -> Response {
    let exchange = |address| Exchange {
        wire: Protocol::Gemini,
        shared,
        request_id: fresh_id("req_"),
        address,
    };
    match call.rsplit_once(':') {
        Some((model, "generateContent")) => {
            exchange(Some((model.to_owned(), false)))
                .respond(&headers, body)
                .await
        }
        Some((model, "streamGenerateContent")) => {
            exchange(Some((model.to_owned(), true)))
                .respond(&headers, body)
                .await
        }
        _ => exchange(None).refuse(&Refusal::new(404, format!("there is no method {call}"))),
    }
}

async fn gemini_models() -> Response {
    let model = json!({
        "name": "models/sim-1",
        "displayName": "Simulated model",
        "inputTokenLimit": 200_000,
        "outputTokenLimit": 32_000,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent"],
    });
    json_response(StatusCode::OK, &json!({"models": [model]}))
}

async fn not_found() -> Response {
    let refusal = Refusal::new(404, "not found");
    json_response(StatusCode::NOT_FOUND, &refusal.body(Protocol::Chat, ""))
}

/// One request on one wire.
struct Exchange {
    wire: Protocol,
    shared: Arc<Shared>,
    request_id: String,
    /// The model, and true for a stream, on the wire that has them in its address.
    address: Option<(String, bool)>,
}

impl Exchange {
    async fn respond(self, headers: &HeaderMap, body: Body413) -> Response {
        if let Err(refusal) = self.authorize(headers) {
            return self.refuse(&refusal);
        }
        let raw = match body {
            Ok(raw) => raw,
            Err(rejection) => {
                let status = rejection.status().as_u16();
                return self.refuse(&Refusal::new(status, rejection.body_text()));
            }
        };
        if let Some(recorded) = self.shared.mind.recorded(&raw) {
            return self.play(recorded);
        }
        let value: Value = match serde_json::from_slice(&raw) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("the request body is not valid JSON: {error}");
                self.log(headers, raw, Value::Null, Seen::default(), Some(&message));
                return self.refuse(&Refusal::new(400, message));
            }
        };
        let value = match self.wire {
            Protocol::Gemini => validate::with_documented_names(value),
            Protocol::Anthropic | Protocol::Chat | Protocol::Responses => value,
        };
        let mut seen = Seen::read(self.wire, &value);
        if let Some((model, stream)) = &self.address {
            seen.model.clone_from(model);
            seen.stream = *stream;
        }
        if let Err(violation) = self.check(headers, &value) {
            let message = violation.to_string();
            self.log(headers, raw, value, seen, Some(&message));
            return self.refuse(&Refusal {
                param: Some(violation.path),
                ..Refusal::new(400, message)
            });
        }
        self.answer(headers, raw, value, seen).await
    }

    /// Sends the recorded answer. The request was already validated when it was recorded.
    fn play(&self, recorded: Option<Recorded>) -> Response {
        let Some(recorded) = recorded else {
            let mut response = self.refuse(&Refusal::new(400, "this request is not in the recording"));
            insert(&mut response, HeaderName::from_static("x-should-retry"), "false");
            return response;
        };
        let body = if recorded.is_cut {
            let steps = vec![Step::Send(recorded.body), Step::Flush, Step::Cut];
            stream::body(steps, self.shared.stop.clone())
        } else {
            Body::from(recorded.body)
        };
        let mut response = Response::new(body);
        *response.status_mut() = status_code(recorded.status);
        insert(&mut response, header::CONTENT_TYPE, &recorded.form);
        response
    }

    async fn answer(&self, headers: &HeaderMap, raw: Bytes, value: Value, seen: Seen) -> Response {
        let answer = match self.shared.mind.answer(self.wire, &seen) {
            Ok(answer) => answer,
            Err(exhausted) => {
                self.log(headers, raw, value, seen, None);
                let mut response = self.refuse(&Refusal::new(500, exhausted.to_string()));
                // Clients retry server errors, but a script that ran out will not recover.
                response
                    .headers_mut()
                    .insert("x-should-retry", HeaderValue::from_static("false"));
                return response;
            }
        };
        let stream = seen.stream;
        let response = self.render(&answer, &value, stream);
        self.log(headers, raw, value, seen, None);
        if answer.fault.delay_ms > 0 {
            let delay = Duration::from_millis(answer.fault.delay_ms);
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.shared.stop.cancelled() => {}
            }
        }
        response
    }

    fn render(&self, answer: &Answer, value: &Value, stream: bool) -> Response {
        let fault = &answer.fault;
        if let Some(refuse) = &fault.refuse {
            return self.refuse_as(refuse);
        }
        let prompt = self
            .shared
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .measure(self.wire, value);
        let in_address = self.address.as_ref().map(|(model, _)| model.as_str());
        let requested = in_address.or_else(|| value["model"].as_str()).unwrap_or("sim-1");
        let context = Context {
            wire: self.wire,
            model: answer.model.clone().unwrap_or_else(|| requested.to_owned()),
            usage: prompt.complete(answer),
            body: value,
        };
        let spoiled;
        let answer = if fault.invalid_utf8 {
            spoiled = spoil(answer);
            &spoiled
        } else {
            answer
        };
        if stream {
            self.stream(&context, answer)
        } else {
            self.whole(&context, answer)
        }
    }

    fn stream(&self, context: &Context<'_>, answer: &Answer) -> Response {
        let fault = &answer.fault;
        let mut frames = context.frames(answer);
        if let Some(kind) = &fault.mid_stream_error {
            frames = stream::break_off(frames, |sequence| context.error_frame(kind, sequence));
        }
        let steps = stream::plan(frames, fault);
        let body = stream::body(steps, self.shared.stop.clone());
        self.reply(fault, "text/event-stream; charset=utf-8", body)
    }

    fn whole(&self, context: &Context<'_>, answer: &Answer) -> Response {
        let fault = &answer.fault;
        if fault.mid_stream_error.is_some() {
            let status = if self.wire == Protocol::Anthropic {
                529
            } else {
                503
            };
            return self.refuse(&Refusal::new(status, "the simulated model is overloaded"));
        }
        let text = context.whole(answer).to_string();
        let body = if *fault == Fault::default() {
            Body::from(text)
        } else {
            let steps = stream::plan_whole(text, fault);
            stream::body(steps, self.shared.stop.clone())
        };
        self.reply(fault, "application/json", body)
    }

    fn reply(&self, fault: &Fault, content_type: &str, body: Body) -> Response {
        let content_type = fault.content_type.as_deref().unwrap_or(content_type);
        let mut response = Response::new(body);
        insert(&mut response, header::CONTENT_TYPE, content_type);
        self.name(&mut response);
        response
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(expected) = self.shared.api_key.as_deref() else {
            return Ok(());
        };
        let given = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = given("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let keys = [given("x-api-key"), given("x-goog-api-key"), bearer];
        if keys.contains(&Some(expected)) {
            Ok(())
        } else {
            Err(Refusal::new(401, "the API key is missing or wrong"))
        }
    }

    fn check(&self, headers: &HeaderMap, value: &Value) -> Result<(), validate::Violation> {
        if self.wire == Protocol::Anthropic && !headers.contains_key("anthropic-version") {
            return Err(validate::Violation::new(
                "anthropic-version",
                "header is required",
            ));
        }
        let betas = headers
            .get("anthropic-beta")
            .and_then(|betas| betas.to_str().ok());
        match (self.wire, betas) {
            (Protocol::Anthropic, Some(betas)) => validate::anthropic_with_betas(value, betas),
            _ => validate::check(self.wire, value),
        }
    }

    fn refuse_as(&self, refuse: &Refuse) -> Response {
        let refusal = Refusal {
            error_type: refuse.error_type.clone(),
            ..Refusal::new(
                refuse.status,
                refuse
                    .message
                    .as_deref()
                    .unwrap_or("the simulated model was told to fail"),
            )
        };
        let mut response = match &refuse.body {
            Some(text) => {
                let mut response = Response::new(Body::from(text.clone()));
                *response.status_mut() = status_code(refuse.status);
                insert(&mut response, header::CONTENT_TYPE, "application/json");
                self.name(&mut response);
                response
            }
            None => self.refuse(&refusal),
        };
        for (name, value) in &refuse.headers {
            if let Ok(name) = HeaderName::try_from(name.as_str()) {
                insert(&mut response, name, value);
            }
        }
        response
    }

    fn refuse(&self, refusal: &Refusal) -> Response {
        let body = refusal.body(self.wire, &self.request_id);
        let mut response = json_response(status_code(refusal.status), &body);
        self.name(&mut response);
        response
    }

    /// Adds the request id under the header name of the vendor.
    fn name(&self, response: &mut Response) {
        let name = match self.wire {
            Protocol::Anthropic => HeaderName::from_static("request-id"),
            Protocol::Chat | Protocol::Responses | Protocol::Gemini => {
                HeaderName::from_static("x-request-id")
            }
        };
        insert(response, name, &self.request_id);
    }

    fn log(&self, headers: &HeaderMap, raw: Bytes, body: Value, seen: Seen, violation: Option<&str>) {
        let keep = self.shared.keep_bodies;
        self.shared.log.push(Logged {
            wire: self.wire,
            bytes: raw.len(),
            body: if keep { body } else { Value::Null },
            raw: if keep { raw } else { Bytes::new() },
            headers: headers
                .iter()
                .map(|(name, value)| logged_header(name, value))
                .collect(),
            seen: if keep { seen } else { seen.without_turns() },
            violation: violation.map(str::to_owned),
        });
    }
}

fn logged_header(name: &HeaderName, value: &HeaderValue) -> (String, String) {
    let shown = if SECRET_HEADERS.contains(&name.as_str()) {
        "[redacted]".to_owned()
    } else {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    (name.as_str().to_owned(), shown)
}

/// Marks the middle of the text as the place of the byte that is not UTF-8.
fn spoil(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    let text = answer.text.get_or_insert_default();
    let middle = text.chars().count() / 2;
    let at = text
        .char_indices()
        .nth(middle)
        .map_or(text.len(), |(index, _)| index);
    text.insert(at, stream::BAD_BYTE_MARK);
    answer
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    insert(&mut response, header::CONTENT_TYPE, "application/json");
    response
}

fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
