//! Takes results to files, webhooks, the desktop and sessions.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{Event, Message, Part, Role, SessionId};
use windlass_config::environment;
use windlass_core::clock::Clock;
use windlass_core::log::{Batch, Durability, Label, NewSession, Opened, SessionQuery, Store, UserName};
use windlass_core::message::{Fragment, FragmentSource};
use windlass_cron::{Courier, DeliveryTarget, JobReport};
use windlass_providers::key::Secret;

/// Variable with the secret that webhooks are signed with.
pub const WEBHOOK_SECRET: &str = "WINDLASS_WEBHOOK_SECRET";

/// Maximum length of a notice on the desktop, in characters.
const NOTICE: usize = 300;

/// Returns the secret that webhooks are signed with, if there is one.
pub fn webhook_secret() -> Option<Secret> {
    environment::var(WEBHOOK_SECRET).map(|secret| Secret::new(&secret))
}

/// Delivers results from this machine.
pub struct LocalCourier {
    /// Finds the sessions that results go to.
    pub store: Arc<dyn Store>,
    /// Time of the messages.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Courier for LocalCourier {
    async fn deliver(&self, target: &DeliveryTarget, report: &JobReport) -> Result<(), String> {
        match target {
            DeliveryTarget::File(path) => write(Path::new(path), report),
            DeliveryTarget::Webhook(url) => {
                let body = serde_json::to_vec(report).map_err(|error| error.to_string())?;
                // The receiver can tell a repeated delivery by its key.
                let key = format!("{}/{}", report.job, report.slot);
                let secret = webhook_secret();
                windlass_providers::post_webhook(url, body, &key, secret.as_ref(), &*self.clock).await
            }
            DeliveryTarget::Notice => notify(report).await,
            DeliveryTarget::Session(key) => self.tell_session(key, report).await,
        }
    }
}

/// Replaces a file by the report.
fn write(path: &Path, report: &JobReport) -> Result<(), String> {
    let replace = || {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder)?;
        file.write_all(markdown(report).as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    replace().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}

/// Returns a report as text.
pub fn markdown(report: &JobReport) -> String {
    let JobReport {
        job,
        time,
        state,
        detail,
        session,
        output,
        ..
    } = report;
    let mut text = format!("# {job}, {time}: {}\n", state.words());
    if !detail.is_empty() {
        text.push_str(&format!("\n{detail}\n"));
    }
    if !output.is_empty() && output != detail {
        text.push_str(&format!("\n{}\n", output.trim_end()));
    }
    if let Some(session) = session {
        text.push_str(&format!("\nResume with: windlass --resume {session}\n"));
    }
    text
}

/// Shows a notice on the desktop, with the program of the platform.
async fn notify(report: &JobReport) -> Result<(), String> {
    let title = format!("windlass: {} {}", report.job, report.state.words());
    let text = if report.detail.is_empty() {
        &report.output
    } else {
        &report.detail
    };
    let text: String = text.chars().take(NOTICE).collect();
    let (program, arguments) = match cfg!(target_os = "macos") {
        true => {
            let script = format!("display notification {text:?} with title {title:?}");
            ("osascript", vec!["-e".to_owned(), script])
        }
        false => ("notify-send", vec!["--".to_owned(), title, text]),
    };
    let ended = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await;
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} failed: {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}

impl LocalCourier {
    /// Adds the report to the session with this key. The model reads it with the next message.
    async fn tell_session(&self, key: &str, report: &JobReport) -> Result<(), String> {
        let owner = windlass_store::owner();
        let Opened { lease, info, .. } = self.open(key, &owner).await?;
        let name = format!("cron:{}", report.job);
        let fragment = Fragment::new(FragmentSource::Child, markdown(report)).labeled(name);
        let time = self.clock.now();
        let message = Message::new(&info.id, Role::User, vec![Part::Context(fragment)], time);
        let batch = Batch {
            first_seq: info.last_seq + 1,
            events: vec![Event::Message {
                message: Arc::new(message),
            }],
            time,
            durability: Durability::Disk,
            ..Batch::default()
        };
        let stored = self.store.append(&lease, batch).await;
        let released = self.store.release(&lease).await;
        stored.and(released).map_err(|error| error.to_string())
    }

    async fn open(&self, key: &str, owner: &str) -> Result<Opened, String> {
        let query = SessionQuery {
            user: Some(UserName::default()),
            called: Some(key.to_owned()),
            children: true,
            ..SessionQuery::default()
        };
        let found = self.store.list(&query).await.map_err(|error| error.to_string())?;
        let known = found
            .into_iter()
            .find(|info| info.label.key.as_deref() == Some(key));
        let opened = match known {
            Some(info) => self.store.open(&info.id, owner).await,
            None => {
                let new = NewSession {
                    id: Some(SessionId::generate()),
                    label: Label {
                        key: Some(key.to_owned()),
                        ..Label::default()
                    },
                    place: home(),
                    time: self.clock.now(),
                    ..NewSession::default()
                };
                self.store.create(new, owner).await
            }
        };
        opened.map_err(|error| error.to_string())
    }
}

/// Folder of a session that a result creates.
fn home() -> String {
    windlass_config::environment::var("HOME").unwrap_or_else(|| "/".to_owned())
}
