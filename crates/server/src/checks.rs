//! SRV-3: the checks that every request passes before a handler sees it, in this order: peer, `Host`, `Origin` and
//! `Sec-Fetch-Site`, credential and scope, content type and `X-Windlass`. Each refusal names its check and the way to
//! fix it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::ServerAccess;
use crate::app::{App, Shared, lock};
use crate::connection::Guest;
use crate::credentials::{Credential, CredentialKind, Scope};
use crate::owner;
use crate::problem::Problem;

/// Address of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Requirement of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No credential: the page's files, health, sign-in.
    Nothing,
    /// A credential with this scope.
    Scope(Scope),
}

/// Headers of every answer. The page runs only its own scripts, and loads nothing from elsewhere.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types windlass-sw",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=(self)",
    ),
];

/// Checks 1 to 3, for every request, known route or not. Adds the headers of every answer.
pub(crate) async fn outer(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    if let Some(proxy) = &app.config.exposure.proxy {
        proxy.strip(&mut request);
    }
    let mut response = match admitted(&app.access, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    app.metrics.answered(response.status());
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let never = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(never);
    response
}

pub(crate) fn admitted(access: &ServerAccess, request: &Request) -> Result<(), Problem> {
    let peer = request.extensions().get::<Peer>();
    if !peer.is_some_and(|Peer(peer)| access.admits(peer.ip())) {
        let text = "this server accepts connections from its own machine only";
        return Err(Problem::refused(StatusCode::FORBIDDEN, "peer", text)
            .fixed_by("windlass serve --listen 0.0.0.0:PORT --name HOST"));
    }
    let headers = request.headers();
    let host = host(request).unwrap_or_default();
    // A request that names a whole address asks for that one, whatever its `Host` says.
    let named = request.uri().authority().map(Authority::as_str);
    let stranger = [Some(host), named]
        .into_iter()
        .flatten()
        .find(|host| !access.is_own_host(host));
    if let Some(host) = stranger {
        let text = format!("this server is not called `{}`", printable(host));
        let name = host.split(':').next().unwrap_or_default();
        return Err(Problem::refused(StatusCode::MISDIRECTED_REQUEST, "host", text)
            .fixed_by(format!("windlass serve --name {}", printable(name))));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or("(not text)");
        if !access.is_own_origin(origin) {
            let text = format!("a page of `{}` may not use this server", printable(origin));
            return Err(
                Problem::refused(StatusCode::FORBIDDEN, "origin", text).fixed_by(format!(
                    "open {} itself, or add its name with --name",
                    access.url()
                )),
            );
        }
    }
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let is_own = |site: &HeaderValue| matches!(site.to_str(), Ok("same-origin" | "none"));
    if !sites.all(is_own) {
        let text = "a page of another site may not use this server";
        return Err(Problem::refused(StatusCode::FORBIDDEN, "sec_fetch_site", text)
            .fixed_by(format!("open {} in its own tab", access.url())));
    }
    Ok(())
}

/// Returns the only `Host` of a request.
fn host(request: &Request) -> Option<&str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    hosts.next().is_none().then_some(host)
}

/// Checks 4 and 5, for a known route.
pub(crate) async fn inner(app: Shared, needs: Needs, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let permitted = match permitted(&app, needs, &head).await {
        Ok(Some(who)) => owner::check(&app, &who.0, &mut head).await.map(|()| Some(who)),
        permitted => permitted,
    };
    match permitted {
        Ok(who) => {
            if let Some(who) = who {
                head.extensions.insert(who);
                if let Some(guest) = head.extensions.get::<Arc<Guest>>() {
                    guest.is_welcome();
                }
            }
            told(next.run(Request::from_parts(head, body)).await)
        }
        Err(problem) => problem.into_response(),
    }
}

/// Turns the refusal of a path, which is a plain text, into a problem.
fn told(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_text = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    match response.status() {
        StatusCode::BAD_REQUEST if is_text => {
            Problem::field("path", "a part of the path is not UTF-8").into_response()
        }
        _ => response,
    }
}

/// The credential of a request.
#[derive(Debug, Clone)]
pub(crate) struct Who(pub(crate) Credential);

async fn permitted(app: &App, needs: Needs, head: &Parts) -> Result<Option<Who>, Problem> {
    let who = match needs {
        Needs::Nothing => None,
        Needs::Scope(scope) => Some(credential(app, head, scope).await?),
    };
    let is_change = !matches!(head.method, Method::GET | Method::HEAD);
    if !is_change {
        return Ok(who);
    }
    let headers = &head.headers;
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        let text = "a request that changes something has the content type application/json";
        return Err(
            Problem::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", text)
                .fixed_by("send the header `Content-Type: application/json`"),
        );
    }
    // A browser sends both without being asked to.
    let is_browser = who
        .as_ref()
        .is_some_and(|Who(who)| matches!(who.kind, CredentialKind::Browser | CredentialKind::Proxy));
    if is_browser && headers.get("x-windlass").is_none_or(|value| value != "1") {
        let text = "a browser must send `X-Windlass: 1`, which no form of another page can";
        return Err(Problem::refused(StatusCode::FORBIDDEN, "header", text)
            .fixed_by("send the header `X-Windlass: 1`"));
    }
    Ok(who)
}

/// Finds the credential of a request. Several cookies of the same name are tried in turn: a page on another port may
/// have set one.
async fn credential(app: &App, head: &Parts, scope: Scope) -> Result<Who, Problem> {
    let given = secrets(&head.headers, &app.access.cookie());
    for (secret, from_cookie) in &given {
        let found = app.credentials.find(secret).await?;
        let fits = |found: &Credential| match found.kind {
            CredentialKind::Token => !from_cookie,
            CredentialKind::Browser => *from_cookie,
            CredentialKind::Link | CredentialKind::Proxy => false,
        };
        let Some(found) = found.filter(fits) else { continue };
        let fix = format!("windlass token create NAME --scope {}", scope.name());
        return within(found, scope, fix);
    }
    let proxy = app.config.exposure.proxy.as_ref();
    if let Some(user) = proxy
        .map(|proxy| proxy.user(&head.headers))
        .transpose()?
        .flatten()
    {
        let fix = format!("windlass serve --identity {}={}", user.name, scope.name());
        return within(user, scope, fix);
    }
    let peer = head.extensions.get::<Peer>().map(|Peer(peer)| peer.ip());
    if !given.is_empty() && app.failures.add(peer, app.ports.clock.elapsed()) {
        let text = "too many invalid credentials; a valid one still works";
        return Err(Problem::refused(
            StatusCode::TOO_MANY_REQUESTS,
            "credential",
            text,
        ));
    }
    let (text, fix) = if given.is_empty() {
        (
            "no credential: sign in with a login link, or send a bearer token",
            "windlass token link",
        )
    } else {
        (
            "this credential is unknown, revoked or expired",
            "windlass token link",
        )
    };
    Err(Problem::refused(StatusCode::UNAUTHORIZED, "credential", text).fixed_by(fix))
}

/// Accepts a credential that has the scope.
fn within(found: Credential, scope: Scope, fix: String) -> Result<Who, Problem> {
    if found.allows(scope) {
        return Ok(Who(found));
    }
    let text = format!("`{}` has no scope `{}`", found.name, scope.name());
    Err(Problem::refused(StatusCode::FORBIDDEN, "scope", text).fixed_by(fix))
}

/// Returns the secrets of a request, and for each whether it came from a cookie. A bearer token goes first.
pub(crate) fn secrets(headers: &HeaderMap, cookie: &str) -> Vec<(String, bool)> {
    const MOST: usize = 4;
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| (token.trim().to_owned(), false))
    });
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let cookies = cookies.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == cookie).then(|| (value.to_owned(), true))
    });
    bearer.into_iter().chain(cookies).take(MOST).collect()
}

/// Returns a text of the client without control characters, for an error message.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 80;
    let shown = text.chars().filter(|sign| !sign.is_control());
    shown.take(LONGEST).collect()
}

/// Wrong credentials of the last minute, by address. They slow down who guesses, and never a valid credential.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<Option<IpAddr>, (Duration, u32)>>);

impl Failures {
    /// Wrong credentials of one address in a minute before the answer changes.
    const MOST: u32 = 20;
    /// Addresses that are remembered.
    const PEERS: usize = 1_000;

    /// Counts a wrong credential. Returns true if there were too many.
    pub(crate) fn add(&self, peer: Option<IpAddr>, now: Duration) -> bool {
        let mut known = lock(&self.0);
        let is_recent = |since: Duration| now.saturating_sub(since) < Duration::from_secs(60);
        if known.len() >= Self::PEERS {
            known.retain(|_, (since, _)| is_recent(*since));
        }
        if known.len() >= Self::PEERS {
            return true;
        }
        let (since, count) = known.entry(peer).or_insert((now, 0));
        if !is_recent(*since) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count > Self::MOST
    }
}
