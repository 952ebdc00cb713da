//! `windlass token`: tokens, browsers and login links of the server.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::SystemClock;
use windlass_server::{Credential, CredentialKind, Credentials, NewCredential, Scope};

use crate::audit::note;
use crate::exit::Exit;
use crate::session_choice::{problem, store};
use crate::terminal::{plain, say, tell};
use windlass_args::{TokenCommand, TokenScope};

/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Runs a subcommand.
pub(crate) async fn token(command: TokenCommand) -> Result<Exit, Problem> {
    let store = store()?;
    let credentials = Credentials::new(Arc::clone(&store) as _, Arc::new(SystemClock::default()));
    match command {
        TokenCommand::Create {
            name,
            scope,
            user,
            days,
        } => {
            let new = NewCredential {
                kind: CredentialKind::Token,
                name,
                scopes: scopes(&scope, Scope::Read),
                user: user.unwrap_or_default(),
                term: days.map(|days| u64::from(days) * DAY),
            };
            let (made, secret) = credentials.create(new).await.map_err(problem)?;
            note(&store, "token_created", told(&made)).await?;
            say!("{secret}");
        }
        TokenCommand::List { json } => {
            let all = credentials.list().await.map_err(problem)?;
            if all.is_empty() && !json {
                tell!("There are no tokens, browsers or links; `windlass serve` prints the first link.");
            }
            for found in all {
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
                let user = match found.user.is_local() {
                    true => String::new(),
                    false => format!("  [{}]", found.user),
                };
                say!(
                    "{}  {kind:<7}  {:<20}  {}{user}",
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
                note(&store, "token_revoked", told(&credential)).await?;
                say!("revoked {} {}", credential.id, plain(&credential.name));
            }
        }
        TokenCommand::Link { url, scope, user } => {
            // Another user is not somebody who runs the server.
            let all = [Scope::Read, Scope::Write, Scope::Approve];
            let scopes = match (scope.as_slice(), &user) {
                ([], Some(_)) => all.to_vec(),
                _ => scopes(&scope, Scope::Admin),
            };
            let new = NewCredential {
                kind: CredentialKind::Link,
                name: "login link".to_owned(),
                scopes,
                user: user.unwrap_or_default(),
                term: None,
            };
            let (made, secret) = credentials.create(new).await.map_err(problem)?;
            note(&store, "link_created", told(&made)).await?;
            say!("{}/#t={secret}", url.trim_end_matches('/'));
        }
    }
    Ok(Exit::Ok)
}

/// Describes a credential for the audit log, without its secret.
fn told(credential: &Credential) -> Value {
    json!({
        "id": credential.id,
        "name": credential.name,
        "scopes": credential.scopes,
        "of": credential.user.to_string(),
    })
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
