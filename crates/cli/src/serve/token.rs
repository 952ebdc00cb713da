//! `windlass token`: tokens, browsers and login links of the server.

use std::sync::Arc;

use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::SystemClock;
use windlass_server::{CredentialKind, Credentials, NewCredential, Scope};

use crate::args::{TokenCommand, TokenScope};
use crate::exit::Exit;
use crate::session_choice::{problem, store};
use crate::terminal::{plain, say};

/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Runs a subcommand.
pub(crate) async fn token(command: TokenCommand) -> Result<Exit, Problem> {
    let credentials = Credentials::new(store()? as _, Arc::new(SystemClock::default()));
    match command {
        TokenCommand::Create { name, scope, days } => {
            let new = NewCredential {
                kind: CredentialKind::Token,
                name,
                scopes: scopes(&scope, Scope::Read),
                term: days.map(|days| u64::from(days) * DAY),
            };
            let (_, secret) = credentials.create(new).await.map_err(problem)?;
            say!("{secret}");
        }
        TokenCommand::List { json } => {
            for found in credentials.list().await.map_err(problem)? {
                if json {
                    let line = serde_json::to_string(&found);
                    say!("{}", line.unwrap_or_default());
                    continue;
                }
                let kind = match found.kind {
                    CredentialKind::Token => "token",
                    CredentialKind::Browser => "browser",
                    CredentialKind::Link => "link",
                    CredentialKind::Proxy => "proxy",
                };
                let scopes: Vec<&str> = found.scopes.iter().map(|scope| scope.name()).collect();
                say!(
                    "{}  {kind:<7}  {:<20}  {}",
                    found.id,
                    scopes.join(" "),
                    plain(&found.name)
                );
            }
        }
        TokenCommand::Revoke { token } => {
            let revoked = credentials.revoke(&token).await.map_err(problem)?;
            if revoked.is_empty() {
                let text = format!("there is no token `{token}`: see `windlass token list`");
                return Err(Problem::new(ProblemKind::Usage, text));
            }
            for credential in revoked {
                say!("revoked {} {}", credential.id, plain(&credential.name));
            }
        }
        TokenCommand::Link { url, scope } => {
            let new = NewCredential {
                kind: CredentialKind::Link,
                name: "login link".to_owned(),
                scopes: scopes(&scope, Scope::Admin),
                term: None,
            };
            let (_, secret) = credentials.create(new).await.map_err(problem)?;
            say!("{}/#t={secret}", url.trim_end_matches('/'));
        }
    }
    Ok(Exit::Ok)
}

fn scopes(given: &[TokenScope], default: Scope) -> Vec<Scope> {
    let scopes = given.iter().map(|scope| match scope {
        TokenScope::Read => Scope::Read,
        TokenScope::Write => Scope::Write,
        TokenScope::Approve => Scope::Approve,
        TokenScope::Admin => Scope::Admin,
    });
    match given {
        [] => vec![default],
        _ => scopes.collect(),
    }
}
