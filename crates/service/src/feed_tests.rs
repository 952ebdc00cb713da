use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::DeltaKind;
use windlass_core::log::{Batch, Lease, NewSession, Store};

use super::*;

/// A feed over a real store, with events published and stored step by step.
struct Bed {
    _folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    lease: Lease,
    feed: Feed,
}

impl Bed {
    async fn new(room: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            windlass_store::open(folder.path().join("test.db"), Arc::new(SystemClock::default())).unwrap();
        let new = NewSession {
            place: "/project".into(),
            time: Timestamp(1),
            ..NewSession::default()
        };
        let opened = store.create(new, &windlass_store::owner()).await.unwrap();
        Self {
            _folder: folder,
            store,
            lease: opened.lease,
            feed: Feed {
                room,
                ..Feed::new(opened.info.last_seq, 4)
            },
        }
    }

    fn follow(&self, after: u64) -> EventStream {
        let store = Arc::clone(&self.store) as _;
        self.feed.follow(self.lease.session.clone(), after, store)
    }

    fn tell(&self, seq: u64, event: Event) {
        self.feed.publish(&Envelope {
            v: EVENT_VERSION,
            session: self.lease.session.clone(),
            seq,
            event,
        });
    }

    async fn store(&self, seq: u64) {
        let batch = Batch {
            first_seq: seq,
            events: vec![state(seq)],
            ..Batch::default()
        };
        self.store.append(&self.lease, batch).await.unwrap();
        self.feed.stored(seq..seq + 1);
    }
}

fn state(seq: u64) -> Event {
    Event::Warning {
        message: format!("event {seq}"),
    }
}

fn piece() -> Event {
    Event::Delta {
        kind: DeltaKind::Text,
        text: "piece".to_owned(),
    }
}

async fn next(events: &mut EventStream) -> Option<Envelope> {
    let next = tokio::time::timeout(Duration::from_secs(60), events.next());
    next.await.expect("something comes")
}

/// Returns the numbers of all state events until the end of the stream.
async fn numbers(mut events: EventStream) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some(envelope) = next(&mut events).await {
        if !envelope.event.is_live() {
            numbers.push(envelope.seq);
        }
    }
    numbers
}

/// EVT-5: a state event published once it is safe arrives, even after a live event with its number and a
/// later state event.
#[tokio::test]
async fn a_late_event_is_not_an_old_one() {
    let bed = Bed::new(STATES).await;
    let reader = bed.follow(0);
    bed.feed.reserve(1..2);
    bed.tell(1, piece());
    bed.feed.reserve(2..3);
    bed.tell(2, state(2));
    bed.store(1).await;
    bed.tell(1, state(1));
    bed.store(2).await;
    bed.feed.end();
    assert_eq!(numbers(reader).await, [2, 1]);
}

/// EVT-5: a reader that starts after an event was published and before it is stored receives the event.
#[tokio::test]
async fn what_is_not_stored_yet_comes_too() {
    let bed = Bed::new(STATES).await;
    bed.feed.reserve(1..3);
    bed.store(1).await;
    bed.tell(1, state(1));
    bed.tell(2, state(2));
    let all = bed.follow(0);
    let rest = bed.follow(1);
    let none = bed.follow(2);
    bed.store(2).await;
    bed.feed.end();
    assert_eq!(numbers(all).await, [1, 2]);
    assert_eq!(numbers(rest).await, [2]);
    assert_eq!(numbers(none).await, Vec::<u64>::new());
}

/// EVT-5: a number that was published but could not be stored is assigned again: a reader that has the number
/// receives the new event.
#[tokio::test]
async fn a_number_that_came_to_nothing_is_no_mark() {
    let bed = Bed::new(STATES).await;
    let reader = bed.follow(3);
    bed.feed.reserve(1..2);
    bed.store(1).await;
    bed.tell(1, state(1));
    bed.feed.end();
    assert_eq!(numbers(reader).await, [1]);
}

/// Next step, if it is possible.
#[derive(Debug, Clone)]
enum Step {
    /// Assigns the next number to an event that is published immediately or once it is safe.
    Begin {
        when_safe: bool,
    },
    /// Publishes or stores one of the pending events, whichever is next for it.
    Go(usize),
    Live,
    Follow,
    /// The reader reads one event, if a new one was published.
    Read,
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(|when_safe| Step::Begin { when_safe }),
        6 => any::<usize>().prop_map(Step::Go),
        1 => Just(Step::Live),
        1 => Just(Step::Follow),
        3 => Just(Step::Read),
    ]
}

/// An event with a number that is not both published and stored.
struct UnderWay {
    seq: u64,
    is_told: bool,
    is_stored: bool,
    when_safe: bool,
}

impl UnderWay {
    async fn go(&mut self, bed: &Bed) {
        if self.when_safe && !self.is_stored || self.is_told {
            bed.store(self.seq).await;
            self.is_stored = true;
        } else {
            bed.tell(self.seq, state(self.seq));
            self.is_told = true;
        }
    }
}

/// Runs the steps; every reader must receive every number once.
async fn check(room: usize, steps: Vec<Step>) {
    let bed = Bed::new(room).await;
    let mut last = 0;
    let mut told = BTreeSet::new();
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut readers: Vec<(EventStream, Vec<u64>)> = vec![(bed.follow(0), Vec::new())];
    let finish = vec![Step::Go(0); 2 * steps.len()];
    for step in steps.into_iter().chain(finish) {
        match step {
            Step::Begin { when_safe } => {
                last += 1;
                bed.feed.reserve(last..last + 1);
                under_way.push(UnderWay {
                    seq: last,
                    is_told: false,
                    is_stored: false,
                    when_safe,
                });
            }
            Step::Go(_) if under_way.is_empty() => {}
            Step::Go(which) => {
                let which = which % under_way.len();
                let event = &mut under_way[which];
                event.go(&bed).await;
                if event.is_told {
                    told.insert(event.seq);
                }
                under_way.retain(|event| !(event.is_told && event.is_stored));
            }
            Step::Live => bed.tell(last, piece()),
            Step::Follow => readers.push((bed.follow(0), Vec::new())),
            Step::Read => {
                for (events, has) in &mut readers {
                    if told.iter().any(|seq| !has.contains(seq)) {
                        let envelope = next(events).await.expect("an event");
                        let is_state = !envelope.event.is_live();
                        has.extend(is_state.then_some(envelope.seq));
                    }
                }
            }
        }
    }
    bed.feed.end();
    for (events, mut has) in readers {
        has.extend(numbers(events).await);
        has.sort_unstable();
        assert_eq!(has, (1..=last).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// EVT-5: in whatever order events are published and stored, and however slow a reader is, it receives
    /// each state event once.
    #[test]
    fn each_state_event_comes_once(room in 1_usize..6, steps in vec(a_step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(room, steps));
    }
}

/// DIST-4, EVT-5: in a cluster nobody sees a state event before it is stored, and what follows it keeps its place.
#[tokio::test]
async fn events_are_held_back_until_they_are_stored() {
    let bed = Bed::new(STATES).await;
    bed.feed.hold_back();
    let mut reader = bed.follow(0);
    bed.feed.reserve(1..3);
    bed.tell(1, state(1));
    bed.tell(1, piece());
    bed.tell(2, state(2));
    let mut late = bed.follow(0);
    assert!(reader.next().now_or_never().is_none() && late.next().now_or_never().is_none());
    bed.store(1).await;
    let told = next(&mut reader).await.unwrap();
    assert_eq!((told.seq, told.event), (1, state(1)));
    assert!(next(&mut reader).await.unwrap().event.is_live());
    assert!(reader.next().now_or_never().is_none());
    bed.store(2).await;
    bed.feed.end();
    assert_eq!(
        (numbers(reader).await, numbers(late).await),
        (vec![2], vec![1, 2])
    );
}

/// DIST-4: an event that is given up is not seen, nor does it hold back what follows; what is not to be stored is told at once.
#[tokio::test]
async fn what_is_given_up_holds_nothing_back() {
    let bed = Bed::new(STATES).await;
    bed.feed.hold_back();
    let reader = bed.follow(0);
    bed.feed.reserve(1..2);
    bed.tell(1, piece());
    bed.feed.withdraw(1..2);
    bed.feed.reserve(1..2);
    bed.tell(1, state(1));
    bed.feed.publish_at_once(&Envelope {
        v: EVENT_VERSION,
        session: bed.lease.session.clone(),
        seq: 0,
        event: piece(),
    });
    bed.feed.end();
    assert_eq!(numbers(reader).await, Vec::<u64>::new());
}

/// DIST-4: what a session could not store before this server lost it is not seen when the server has it again.
#[tokio::test]
async fn lost_events_do_not_come_back() {
    let bed = Bed::new(STATES).await;
    bed.feed.hold_back();
    bed.feed.reserve(1..2);
    bed.tell(1, piece());
    bed.tell(1, state(7));
    bed.feed.cut();
    bed.feed.hold_back();
    let reader = bed.follow(0);
    bed.feed.reserve(1..2);
    bed.tell(1, state(1));
    bed.store(1).await;
    bed.feed.end();
    let events: Vec<Event> = reader.map(|envelope| envelope.event).collect().await;
    assert_eq!(events, [state(1)]);
}
