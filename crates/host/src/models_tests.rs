use std::time::Duration;

use futures_util::poll;
use tokio_util::sync::CancellationToken;
use windlass_core::message::Message;
use windlass_core::provider::{Prefix, Request, ToolChoice};

use super::*;
use crate::backoff::tests::ManualClock;
use windlass_config::settings::{KeyCommand, ProviderEntry};
use windlass_providers::Wire;

/// Providers at addresses where nothing listens.
fn settings(names: &[&str]) -> Arc<Settings> {
    windlass_providers::install_tls();
    let mut settings = Settings {
        provider: names.first().map(|name| (*name).to_owned()),
        ..Settings::default()
    };
    settings.timeouts.connect = Duration::from_secs(5);
    settings.timeouts.stream_idle = Duration::from_secs(5);
    settings.timeouts.no_providers_backoff = Duration::from_secs(2);
    for name in names {
        let entry = ProviderEntry {
            wire: Some(Wire::Chat),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            model: Some(format!("{name}-model")),
            ..ProviderEntry::default()
        };
        settings.providers.insert((*name).to_owned(), entry);
    }
    Arc::new(settings)
}

async fn ask(active: &ActiveProvider) -> Result<(), ProviderErrorKind> {
    let session = "s".into();
    let request = Request {
        prefix: Arc::new(Prefix::default()),
        messages: vec![Arc::new(Message::user(&session, "hi", Default::default()))],
        tool_choice: ToolChoice::Auto,
        max_output: None,
        session,
        cancel: CancellationToken::new(),
    };
    active
        .provider
        .send(request)
        .await
        .map(drop)
        .map_err(|error| error.kind)
}

/// PROV-9: after a refused connection the next turn fails for the same reason, until the window is over;
/// other providers are not affected.
#[tokio::test]
async fn nobody_there_is_not_tried_again_at_once() {
    let clock = Arc::new(ManualClock::default());
    let mut models = Models {
        clock: Arc::clone(&clock) as _,
        ..Models::new(&settings(&["gone", "other"]), None)
    };
    let active = models.ready().await.unwrap();
    assert_eq!(ask(&active).await, Err(ProviderErrorKind::Network));
    clock.pass(1_000);
    let Err(why) = models.ready().await else {
        panic!("it is tried again")
    };
    assert!(
        why.message.contains("cannot connect to http://127.0.0.1:1"),
        "{why:?}"
    );
    assert!(why.hint.unwrap().ends_with("retry in 1.0 s"));
    models.choose(Some("other"), None).await.unwrap();
    assert!(models.ready().await.is_ok());
    models.choose(Some("gone"), None).await.unwrap();
    assert_eq!(
        ask(&models.ready().await.unwrap()).await,
        Err(ProviderErrorKind::Network)
    );
    clock.pass(2_000);
    assert!(models.ready().await.is_ok());
}

/// PROV-7: another provider or model is used from the next turn on; an unusable one changes nothing.
#[tokio::test]
async fn the_choice_holds_for_the_next_turn() {
    let mut models = Models::new(&settings(&["first", "Other"]), None);
    let asked = |models: &Models| models.active().unwrap();
    let is = |provider: &str, model: &str| (provider.to_owned(), model.to_owned());
    assert_eq!(asked(&models), is("first", "first-model"));
    models.choose(Some("other"), None).await.unwrap();
    assert_eq!(asked(&models), is("Other", "Other-model"));
    models.choose(None, Some("big")).await.unwrap();
    assert_eq!(asked(&models), is("Other", "big"));
    models.choose(None, Some("first/odd/name")).await.unwrap();
    assert_eq!(asked(&models), is("first", "odd/name"));
    assert_eq!(models.choose(Some("nix"), None).await, Err(ChooseError::Unknown));
    let incomplete = models.choose(Some("ollama"), None).await;
    assert!(
        matches!(incomplete, Err(ChooseError::Failed(_))),
        "{incomplete:?}"
    );
    assert_eq!(asked(&models), is("first", "odd/name"));
    let active = models.ready().await.unwrap();
    assert_eq!(active.provider.model().id, "odd/name");
}

/// PROV-7: a choice made while another provider is being connected is not undone when that one is ready.
#[tokio::test]
async fn a_choice_outlasts_a_slow_connection() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let mut settings = (*settings(&["slow", "other"])).clone();
    let line = format!("until [ -e '{}' ]; do sleep 0.01; done; echo key", gate.display());
    let entry = settings.providers.get_mut("slow").unwrap();
    entry.key_command = Some(KeyCommand::Shell(line));
    let models = Models::new(&Arc::new(settings), None);
    let mut connecting = std::pin::pin!(models.connect());
    assert!(poll!(&mut connecting).is_pending());
    models.clone().choose(Some("other"), None).await.unwrap();
    std::fs::write(&gate, "").unwrap();
    assert_eq!(connecting.await.unwrap().provider.name(), "other");
    assert_eq!(models.ready().await.unwrap().provider.name(), "other");
}
