//! `windlass serve`: the HTTP server over the sessions of this user.

mod files;
mod token;

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_api::SessionId;
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::SystemClock;
use windlass_sandbox::process;
use windlass_server::{Server, ServerConfig, ServerPorts};

use self::files::LocalFiles;
pub(crate) use self::token::token;
use crate::args::{ExecOptions, ServeOptions};
use crate::attach;
use crate::cron::{InSession, News};
use crate::engine::{self, LAST_CALL, Plan, working_directory};
use crate::exec::flags;
use crate::exit::Exit;
use crate::interactive::{NEWS, Ready};
use crate::observe::Wanted;
use crate::session_choice::{NewSession, SessionChoice, SessionStore};
use crate::signals::Signals;
use crate::terminal::{plain, say, tell, tell_warnings};

/// Prepares the settings and models of the sessions.
async fn ready(
    options: &ServeOptions,
    keeper: SessionStore,
    which: &SessionChoice,
    cwd: &Path,
) -> Result<Ready, Problem> {
    let run = ExecOptions {
        mode: options.mode.clone(),
        allow_home: options.allow_home,
        ..ExecOptions::default()
    };
    let given = options.settings.given_with(flags(&run));
    let wanted = Wanted {
        metrics: true,
        ..Wanted::default()
    };
    Ready::make(given, keeper, which, cwd, wanted).await
}

/// Serves until a signal.
pub(crate) async fn serve(options: &ServeOptions) -> Result<Exit, Problem> {
    let cwd = working_directory(options.cd.as_deref())?;
    let which = SessionChoice::New;
    let keeper = SessionStore::begin(&which)?;
    let ready = ready(options, keeper, &which, &cwd).await?;
    let Ready {
        settings,
        given,
        lines,
        keeper,
        notices,
    } = ready;
    keeper.ready().await?;
    let plan = Plan {
        cwd: cwd.clone(),
        which,
        fork: false,
        require_done: false,
        interactive: true,
        given: given.clone(),
        watch: lines.watch.clone(),
        new: NewSession::default(),
    };
    // No session has this id: each one gets an environment of its own.
    let none = SessionId::generate();
    let owner = windlass_store::owner();
    let (service, _factory) =
        engine::service(&settings, &lines.models, plan, (&none, owner.clone()), &keeper);
    service.mark_orphans();
    let backend = Arc::new(service);
    let observer = lines.watch.observer.clone();
    let ports = ServerPorts {
        backend: Arc::clone(&backend) as _,
        store: Arc::clone(&keeper.store),
        clock: Arc::new(SystemClock::default()),
        files: Arc::new(LocalFiles { given }),
        metrics: Arc::new(move || {
            observer
                .as_ref()
                .map(|observer| observer.metrics())
                .unwrap_or_default()
        }),
    };
    let config = ServerConfig {
        listen: options.listen,
        names: options.name.clone(),
        is_https: options.https,
        place: cwd.display().to_string(),
        openai: options.openai,
        version: env!("CARGO_PKG_VERSION"),
    };
    let failed = |error: windlass_server::ServerError| Problem::new(ProblemKind::Failed, error.to_string());
    let server = Server::bind(config, ports).await.map_err(failed)?;
    tell_warnings(&settings.warnings);
    notices.iter().for_each(|notice| tell!("{}", plain(notice)));
    let link = server.login_link().await.map_err(failed)?;
    say!("listening on {}", server.access().url());
    say!("sign in, once, within ten minutes: {link}");
    attach::register(&*keeper.store, &owner, Some(&server.access().url())).await?;
    let news = News::new(NEWS);
    let jobs = InSession::start(&keeper.store, &options.settings, &news);
    let stop = CancellationToken::new();
    let signals = Signals::listen();
    let stopping = async {
        signals.interrupted().await;
        tell!("stopping; once more stops at once");
        stop.cancel();
    };
    tokio::join!(stopping, server.run(stop.clone()));
    attach::register(&*keeper.store, &owner, None).await?;
    if let Some(jobs) = jobs {
        jobs.stop().await;
    }
    backend.close().await;
    lines.watch.close().await;
    process::settle(LAST_CALL).await;
    Ok(Exit::Ok)
}
