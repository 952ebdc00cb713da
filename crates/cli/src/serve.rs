//! `windlass serve`: the HTTP server over the sessions of this user.

mod files;
pub(crate) mod folders;
mod imports;
mod push;
mod token;

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, SessionId};
use windlass_config::environment::{self, Given};
use windlass_config::private_file::PrivateFile;
use windlass_config::settings::{ServerSettings, Settings};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::SystemClock;
use windlass_host::watch::Watch;
use windlass_sandbox::{Warden, process};
use windlass_server::{Exposure, ExposureOptions, PushPorts, Server, ServerConfig, ServerPorts};

use self::files::LocalFiles;
use self::imports::LocalImports;
use self::push::Subscriptions;
pub(crate) use self::token::token;
use crate::attach;
use crate::audit::{self, LocalAccounts};
use crate::cluster::{self, Joined};
use crate::cron::{InSession, News};
use crate::engine::{self, LAST_CALL, Plan, working_directory};
use crate::exec::flags;
use crate::exit::Exit;
use crate::interactive::{NEWS, Ready};
use crate::observe::Wanted;
use crate::session_choice::{NewSession, SessionChoice, SessionStore};
use crate::signals::Signals;
use crate::terminal::{plain, say, tell, tell_warnings};
use windlass_args::{ExecOptions, ServeOptions};

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

/// Combines options and settings; an option replaces its setting.
fn exposure(options: &ServeOptions, settings: &ServerSettings) -> Result<Exposure, Problem> {
    let listed = |given: &[String], set: &[String]| {
        if given.is_empty() {
            set.to_vec()
        } else {
            given.to_vec()
        }
    };
    let (given, set) = (&options.proxy, settings);
    let exposure = Exposure::new(ExposureOptions {
        listen: options.listen.or(set.listen),
        names: listed(&options.name, &set.names),
        is_https: options.https,
        tls_cert: options.tls_cert.clone().or_else(|| set.tls_cert.clone()),
        tls_key: options.tls_key.clone().or_else(|| set.tls_key.clone()),
        trust_proxy: given.trust_proxy.or(set.trust_proxy),
        identity_header: given
            .identity_header
            .clone()
            .or_else(|| set.identity_header.clone()),
        identities: listed(&given.identity, &set.identities),
    });
    exposure.map_err(|error| Problem::usage(error.to_string()))
}

/// Returns what the server needs from the program.
fn ports(
    backend: Arc<dyn Backend>,
    keeper: &SessionStore,
    (given, cwd): (Given, &Path),
    watch: &Watch,
    (settings, joined): (&Arc<Settings>, Option<&Joined>),
) -> Result<ServerPorts, Problem> {
    let observer = watch.observer.clone();
    let member = joined.map(|joined| Arc::clone(&joined.member));
    let store = Arc::clone(&keeper.store);
    let metrics = move || {
        let observer = observer.as_ref();
        let own = member.as_ref().map(|member| member.metrics()).unwrap_or_default();
        observer.map(|observer| observer.metrics()).unwrap_or_default() + &own + &store.metrics()
    };
    let file = PrivateFile::new(environment::folders()?.push_file());
    let files = Arc::new(LocalFiles { given });
    Ok(ServerPorts {
        backend,
        store: Arc::clone(&keeper.store),
        clock: Arc::new(SystemClock::default()),
        imports: Arc::new(LocalImports {
            store: Arc::clone(&keeper.store),
            files: Arc::clone(&files),
            here: cwd.display().to_string(),
        }),
        files,
        metrics: Arc::new(metrics),
        accounts: Arc::new(LocalAccounts::new(&keeper.store, settings)),
        push: PushPorts {
            file: Arc::new(Subscriptions(file)),
            objection: windlass_tools::address_objection,
            allows_private: settings.agent.session.server.push_private,
        },
        warn: Arc::new(|text| tell!("warning: {}", plain(text))),
        changed: joined.map(|joined| Arc::clone(&joined.changed)),
    })
}

/// Starts the process that ends what the sessions started, if this one is killed or, in a cluster, past its deadline.
fn warden(is_in_cluster: bool) -> Option<Arc<Warden>> {
    match Warden::start(is_in_cluster.then(cluster::first_deadline)) {
        Ok(warden) => Some(Arc::new(warden)),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => None,
        Err(error) => {
            tell!(
                "warning: processes may outlive a killed server, because its warden did not start: {error}"
            );
            None
        }
    }
}

/// Binds the port of the server. One that cannot leaves its cluster again.
async fn bound(config: ServerConfig, ports: ServerPorts, joined: Option<&Joined>) -> Result<Server, Problem> {
    let bound = Server::bind(config, ports).await;
    if let (Err(_), Some(joined)) = (&bound, joined) {
        joined.leave().await;
    }
    bound.map_err(problem)
}

fn problem(error: windlass_server::ServerError) -> Problem {
    Problem::new(ProblemKind::Failed, error.to_string())
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
    let exposure = exposure(options, &settings.agent.session.server)?;
    keeper.ready().await?;
    let warden = warden(options.cluster.cluster);
    audit::prune(&keeper.store, &settings).await?;
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
    let owner = cluster::owner(options.cluster.cluster);
    let (service, factory) = engine::service(&settings, &lines.models, plan, (&none, owner.clone()), &keeper);
    let service = Arc::new(service);
    let of_process = (&service, &factory, owner.as_str(), warden.as_ref());
    let joining = cluster::join(&options.cluster, &settings, &keeper.store, of_process);
    let (joined, backend) = joining.await?;
    let of_server = (&settings, joined.as_ref());
    let ports = ports(backend, &keeper, (given, &cwd), &lines.watch, of_server)?;
    let config = ServerConfig {
        exposure: exposure.clone(),
        place: cwd.display().to_string(),
        openai: options.openai,
        version: env!("CARGO_PKG_VERSION"),
    };
    let server = bound(config, ports, joined.as_ref()).await?;
    tell_warnings(&settings.warnings);
    tell_warnings(&exposure.warnings());
    notices.iter().for_each(|notice| tell!("{}", plain(notice)));
    let link = server.login_link().await.map_err(problem)?;
    say!("listening on {}", server.access().url());
    say!("sign in, once, within ten minutes: {link}");
    attach::register(&*keeper.store, &owner, Some(&server.access().url())).await?;
    let news = News::new(NEWS);
    let jobs = InSession::start(&keeper.store, &options.settings, &news);
    let stop = CancellationToken::new();
    let signals = Signals::listen();
    let stopping = async {
        signals.interrupted().await;
        tell!("stopping; press Ctrl+C again to stop immediately");
        if let Some(joined) = &joined {
            joined.leave().await;
        }
        stop.cancel();
    };
    if let Some(joined) = &joined {
        joined.start();
    }
    tokio::join!(stopping, server.run(stop.clone()));
    attach::register(&*keeper.store, &owner, None).await?;
    if let Some(jobs) = jobs {
        jobs.stop().await;
    }
    service.close().await;
    lines.watch.close().await;
    process::settle(LAST_CALL).await;
    Ok(Exit::Ok)
}
