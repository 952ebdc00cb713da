//! Costs.

use windlass_core::clock::Timestamp;
use windlass_core::log::{Booking, NewSession, SpentBy};
use windlass_core::model::Usage;

use super::bed::{Bed, batch};

fn booking(cause: &str, model: &str, day: u64, cost: Option<f64>) -> Booking {
    Booking {
        time: Timestamp(day * 86_400_000 + 5),
        provider: "p".into(),
        model: model.into(),
        cause: cause.into(),
        usage: Usage {
            input: 10,
            output: 2,
            cache_read: 5,
            cache_write: 1,
            ..Usage::default()
        },
        cost_usd: cost,
    }
}

/// SES-8: every call is booked by session, model, cause and day; a child's cost is added to all its ancestors
/// at once.
#[tokio::test]
async fn calls_are_booked_and_added_up() {
    let bed = Bed::new();
    let parent = bed.session("parent").await;
    for (id, above) in [("child", "parent"), ("grandchild", "child")] {
        let new = NewSession {
            id: Some(id.into()),
            parent: Some(above.into()),
            ..NewSession::default()
        };
        bed.store.create(new, "me").await.unwrap();
    }
    let mut with_booking = batch(1, Vec::new());
    with_booking.bookings = vec![booking("turn", "big", 0, Some(0.5))];
    bed.store.append(&parent.lease, with_booking).await.unwrap();
    let book =
        async |session: &str, booking: Booking| bed.store.book(&session.into(), booking).await.unwrap();
    book("grandchild", booking("turn", "small", 1, Some(0.25))).await;
    book("parent", booking("title-parent", "small", 1, None)).await;
    let info = bed.store.get(&"parent".into()).await.unwrap().unwrap();
    assert!((info.totals.cost_usd - 0.75).abs() < 1e-9);
    assert_eq!(
        (info.totals.prompt_tokens, info.totals.completion_tokens),
        (48, 6)
    );
    let child = bed.store.get(&"child".into()).await.unwrap().unwrap();
    assert!((child.totals.cost_usd - 0.25).abs() < 1e-9);
    let spent = async |session: Option<&str>, by: SpentBy| -> Vec<(String, u64)> {
        let session = session.map(windlass_core::id::SessionId::from);
        let rows = bed.store.spent(session.as_ref(), by).await.unwrap();
        rows.into_iter().map(|row| (row.of, row.calls)).collect()
    };
    let pairs = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs
            .iter()
            .map(|(of, calls)| ((*of).to_owned(), *calls))
            .collect()
    };
    assert_eq!(
        spent(None, SpentBy::Session).await,
        pairs(&[("parent", 2), ("grandchild", 1)])
    );
    assert_eq!(
        spent(None, SpentBy::Model).await,
        pairs(&[("p/big", 1), ("p/small", 2)])
    );
    assert_eq!(
        spent(None, SpentBy::Day).await,
        pairs(&[("1970-01-01", 1), ("1970-01-02", 2)])
    );
    assert_eq!(spent(Some("child"), SpentBy::Cause).await, pairs(&[("turn", 1)]));
    assert_eq!(
        spent(Some("parent"), SpentBy::Cause).await,
        pairs(&[("turn", 2), ("title-parent", 1)])
    );
}
