//! Titles that a model writes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{Client, Event, SessionEvent, SessionId};
use windlass_core::clock::{Clock, SystemClock, Timestamp};
use windlass_core::log::SpentBy;
use windlass_core::provider::ProviderErrorKind;
use windlass_core::script::{Scene, ScriptedProvider};

use super::bed::{Bed, all, answer, new_session, say};

fn with_titles(scenes: impl IntoIterator<Item = Scene>, title: Scene) -> (Bed, Arc<ScriptedProvider>) {
    let bed = Bed::new(scenes);
    let model = Arc::new(ScriptedProvider::new([title]));
    *bed.kit.title_model.lock().unwrap() = Some(Arc::clone(&model) as _);
    (bed, model)
}

/// A clock whose short sleeps end immediately.
#[derive(Default)]
struct Hasty(SystemClock);

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        if duration > Duration::from_secs(10) {
            std::future::pending::<()>().await;
        }
    }
}

async fn title(bed: &Bed, session: &SessionId) -> Option<String> {
    bed.store().get(session).await.unwrap().unwrap().label.title
}

/// SES-6: a model writes a title from the first message, in one line; it is published, stored, and its cost
/// recorded under its own cause.
#[tokio::test]
async fn a_model_makes_the_title() {
    let scenes = [Scene::text("first"), Scene::text("second")];
    let (bed, model) = with_titles(scenes, Scene::text("  A good title\nand more"));
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "please do something about this").await;
    answer(&service, &session, "and again").await;
    let made = async {
        while title(&bed, &session).await.as_deref() != Some("A good title") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), made).await.unwrap();
    service.close().await;
    assert_eq!(model.seen().len(), 1, "only the first message is titled");
    let spent = bed.store().spent(Some(&session), SpentBy::Cause).await.unwrap();
    let cause = format!("title-{session}");
    assert!(
        spent.iter().any(|row| row.of == cause && row.calls == 1),
        "{spent:?}"
    );
    let entries = bed.store().entries(&session, 0, 1000).await.unwrap();
    let told = |event: &Event| matches!(event, Event::Session(SessionEvent::Title { title }) if title == "A good title");
    assert_eq!(entries.iter().filter(|entry| told(&entry.event)).count(), 1);
}

/// SES-6: a title model that never answers delays no turn, and a program that ends does not wait long for it.
#[tokio::test]
async fn a_title_delays_nothing() {
    let (mut bed, model) = with_titles([Scene::text("first")], Scene::Hang(Vec::new()));
    bed.clock = Arc::new(Hasty::default());
    let service = bed.service();
    let session = new_session(&service).await.id;
    let events = all(service.submit(say(&session, "please")).await.unwrap()).await;
    assert!(matches!(events.last().unwrap().event, Event::Final { .. }));
    service.close().await;
    assert_eq!(model.seen().len(), 1);
    assert_eq!(title(&bed, &session).await.as_deref(), Some("please"));
}

/// SES-6: if the title model fails, the title from the prompt remains.
#[tokio::test]
async fn a_failed_title_leaves_the_prompts() {
    let failure = Scene::fail(ProviderErrorKind::Auth, "no key");
    let (bed, _) = with_titles([Scene::text("first")], failure);
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "please do it").await;
    service.close().await;
    assert_eq!(title(&bed, &session).await.as_deref(), Some("please do it"));
    let spent = bed.store().spent(Some(&session), SpentBy::Cause).await.unwrap();
    assert!(spent.iter().all(|row| row.of == "turn"), "{spent:?}");
}
