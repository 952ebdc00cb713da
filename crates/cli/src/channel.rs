//! UI-6: `windlass channel webhook`: sessions for people who write from elsewhere.

mod conversation;
mod inbound;

use std::sync::Arc;

use windlass_api::Approvers;
use windlass_config::{Problem, ProblemKind, environment};
use windlass_host::job_courier::{WEBHOOK_SECRET, webhook_secret};
use windlass_providers::WebhookGuard;

use self::conversation::Conversations;
use crate::engine::{Engine, ModelRuntime, Plan, working_directory};
use crate::exit::Exit;
use crate::observe::Wanted;
use crate::session_choice::{NewSession, SessionChoice, SessionStore};
use crate::session_folder;
use crate::signals::Signals;
use crate::terminal::tell;
use windlass_args::{ChannelCommand, WebhookOptions};

/// Runs `windlass channel`.
pub(crate) async fn command(command: ChannelCommand) -> Result<Exit, Problem> {
    match command {
        ChannelCommand::Webhook(options) => webhook(&options).await,
    }
}

async fn webhook(options: &WebhookOptions) -> Result<Exit, Problem> {
    let Some(secret) = webhook_secret() else {
        return Err(Problem::usage(format!(
            "{WEBHOOK_SECRET} is not set: without a secret, anybody could write to your sessions. Make one with \
             `openssl rand -hex 32`, and give the same to the bridge"
        )));
    };
    windlass_telemetry::checked("--to", options.to.clone())
        .map_err(|error| Problem::usage(error.to_string()))?;
    let cwd = working_directory(options.cd.as_deref())?;
    let given = options.settings.given();
    let settings = Arc::new(environment::settings(&given, &cwd)?);
    session_folder::check(&settings, &cwd, false)?;
    let which = SessionChoice::New;
    let keeper = SessionStore::open(&which)?;
    let runtime = ModelRuntime::new(&settings, &keeper, &which, None, Wanted::default()).await?;
    let ModelRuntime { models, watch } = runtime;
    models.connect().await?;
    let signals = Signals::begin();
    let plan = Plan {
        cwd: cwd.clone(),
        which,
        fork: false,
        require_done: false,
        interactive: true,
        given,
        watch,
        new: NewSession::default(),
    };
    let engine = Engine::start(&settings, &models, plan, keeper).await?;
    let listener = tokio::net::TcpListener::bind(options.listen)
        .await
        .map_err(|error| {
            Problem::new(
                ProblemKind::Failed,
                format!("--listen {}: {error}", options.listen),
            )
        });
    let served = match listener {
        Ok(listener) => {
            let address = listener.local_addr().unwrap_or(options.listen);
            tell!("listening on http://{address}/messages; Ctrl+C ends it");
            let approvers = match options.approver.is_empty() {
                true => settings.agent.session.approvers.clone(),
                false => options.approver.clone(),
            };
            let conversations = Conversations::new(
                Arc::clone(&engine.backend),
                cwd.display().to_string(),
                (options.to.clone(), secret.clone()),
                Approvers(approvers),
            );
            let router = inbound::router(Arc::clone(&conversations), WebhookGuard::new(secret));
            let signals = signals.ready();
            tokio::select! {
                served = axum::serve(listener, router) => served.map_err(|error| {
                    Problem::new(ProblemKind::Failed, error.to_string())
                }),
                () = signals.interrupted() => Ok(()),
            }
            .map(|()| conversations)
        }
        Err(problem) => Err(problem),
    };
    let ended = match served {
        Ok(conversations) => {
            conversations.close().await;
            Ok(Exit::Ok)
        }
        Err(problem) => Err(problem),
    };
    let begun = engine.session.id.clone();
    engine.stop(&[&begun]).await;
    ended
}
