//! Fragments keep their origin, and records of the first format are converted.

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::message::Compaction;

fn user(parts: Vec<Part>) -> Message {
    Message::new(&"s".into(), Role::User, parts, Timestamp(1))
}

fn summary() -> Part {
    Part::Compaction(Compaction {
        summary: "so far".to_owned(),
        tokens_before: 10,
        tokens_after: 5,
    })
}

fn sources(message: &Message) -> Vec<Option<FragmentSource>> {
    let source = |part: &Part| match part {
        Part::Context(fragment) => Some(fragment.source),
        _ => None,
    };
    message.parts.iter().map(source).collect()
}

/// MSG-6: injected text of the first format becomes a fragment, and reads the same for a model.
#[test]
fn texts_of_the_first_format_become_fragments() {
    let environment = "<environment>\nworking directory: /project\nplatform: linux x86_64\n</environment>";
    let texts = [environment, "<said_by_the_user>\nfix it\n</said_by_the_user>"];
    let mut message = user(vec![Part::text(environment), Part::text("hello")]);
    assert!(upgrade(&mut message));
    assert_eq!(sources(&message), [Some(FragmentSource::Environment), None]);
    assert_eq!(message.user_text(), "hello");

    let mut reminder = user(vec![Part::text("<reminder>\ntodos are open\n</reminder>")]);
    assert!(upgrade(&mut reminder));
    assert_eq!(sources(&reminder), [Some(FragmentSource::Reminder)]);

    let old = [
        "<left_out ref=\"summary-1\">3 messages went here</left_out>",
        texts[1],
        "<standing what=\"todos\">\n- one\n</standing>",
        environment,
    ];
    let parts = [summary()].into_iter().chain(old.map(Part::text));
    let mut compacted = user(parts.collect());
    assert!(upgrade(&mut compacted));
    let expected = [
        None,
        Some(FragmentSource::Reference),
        Some(FragmentSource::Quote),
        Some(FragmentSource::Fact),
        Some(FragmentSource::Environment),
    ];
    assert_eq!(sources(&compacted), expected);
    let encoded = compacted.parts.iter().filter_map(|part| match part {
        Part::Context(fragment) => Some(fragment.encoded()),
        _ => None,
    });
    assert_eq!(encoded.collect::<Vec<_>>(), old);
}

/// MSG-6: words of the user stay the user's, whatever they start with.
#[test]
fn the_users_words_are_not_converted() {
    let pasted = [
        "<environment> is the tag I mean",
        "<environment>\nPATH=/bin\n</environment>",
        "<reminder> buy milk",
        "<said_by_the_user>\nI quote\n</said_by_the_user>",
        "<left_out ref=\"x\">",
    ];
    for text in pasted {
        let mut message = user(vec![Part::text("look:"), Part::text(text)]);
        assert!(!upgrade(&mut message), "{text}");
        let mut alone = user(vec![Part::text(text)]);
        assert!(!upgrade(&mut alone), "{text}");
        assert_eq!(alone.user_text(), text);
    }
}

/// MSG-6: a fragment has a size limit, and marks where it was cut.
#[test]
fn long_fragments_are_cut() {
    let fragment = Fragment::new(FragmentSource::Hook, "ä".repeat(MAX_FRAGMENT));
    assert!(fragment.text.len() <= MAX_FRAGMENT);
    assert!(fragment.text.ends_with(CUT));
    assert!(Fragment::new(FragmentSource::Hook, "short").text == "short");
}

proptest! {
    /// MSG-6: the user's words and injected text keep their origin through storage.
    #[test]
    fn origins_survive_storage(words in ".{0,40}", injected in ".{0,40}", tag in 0_usize..4) {
        let start = ["", "<environment>\n", "<reminder>\n", "<said_by_the_user>\n"][tag];
        let words = format!("{start}{words}");
        let fragment = Fragment::new(FragmentSource::Memory, injected).labeled("notes");
        let message = user(vec![Part::Context(fragment.clone()), Part::text(words.clone())]);
        let stored = serde_json::to_string(&message).unwrap();
        let read: Message = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(read.user_text(), words);
        prop_assert_eq!(&read.parts[0], &Part::Context(fragment));
    }
}
