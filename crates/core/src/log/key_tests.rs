use proptest::prelude::*;

use super::*;

const UUID: &str = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

/// SES-9: each kind of key is parsed and printed in its one spelling, and reports its depth.
#[test]
fn keys_are_read_and_printed() {
    let cases = [
        ("agent:main:main".to_owned(), 0),
        ("agent:my.agent-2:main".to_owned(), 0),
        ("agent:main:matrix:group:!room:example.org".to_owned(), 0),
        ("agent:main:telegram:group:-100123".to_owned(), 0),
        ("agent:main:main:group:x".to_owned(), 0),
        ("main:work:signal:dm:+491234".to_owned(), 0),
        ("main:work:matrix:group:!room:example.org".to_owned(), 0),
        (format!("agent:main:subagent:{UUID}"), 1),
        (format!("agent:main:subagent:{UUID}:depth:3"), 3),
        (format!("agent:{UUID}:sub:1:agent:main:main"), 1),
        (format!("agent:{UUID}:sub:2:agent:x:sub:1:agent:main:main"), 2),
        (format!("agent:x:sub:1:{UUID}"), 1),
    ];
    for (text, depth) in cases {
        let key: SessionKey = text.parse().unwrap();
        assert_eq!((key.to_string(), key.depth()), (text, depth));
    }
}

/// SES-9: the error for an invalid key gives the reason.
#[test]
fn other_texts_are_told_why() {
    let upper = UUID.to_uppercase();
    let cases = [
        ("", "does not start with `agent:`"),
        ("user:x:main", "does not start with `agent:`"),
        ("a:work:chat:call:x", "must be followed by `:dm:<sender>`"),
        ("a:wo rk:chat:dm:x", "an account's name consists of"),
        ("a:work:Chat:dm:x", "a channel's name consists of"),
        ("a:work:chat:dm:", "has no name"),
        ("agent:main", "the agent must be followed by"),
        ("agent::main", "an agent's name consists of"),
        ("agent:a b:main", "an agent's name consists of"),
        ("agent:a:other", "neither `main`"),
        ("agent:a:Chat:group:x", "a channel's name consists of"),
        ("agent:a:chat:room:x", "the channel must be followed by"),
        ("agent:a:chat:group:", "the group has no name"),
        ("agent:a:chat:group:x\ny", "control characters"),
        ("agent:a:sub:1", "must be written as `sub:<depth>"),
        ("agent:a:sub:0:x", "not a depth from 1"),
        ("agent:a:sub:01:x", "not a depth from 1"),
        ("agent:a:sub:1:", "is empty"),
        (
            "agent:a:subagent:group:x",
            "the sub-agent may only be followed by",
        ),
        ("agent:a:subagent:x", "is not a UUID"),
        (&format!("agent:a:subagent:{upper}"), "lowercase UUID"),
        (&format!("agent:a:subagent:{UUID}:depth:1"), "depth 1 is left out"),
        (&format!("agent:a:subagent:{UUID}:depth:02"), "not a depth"),
        (&format!("agent:a:subagent:{UUID}:depth:256"), "not a depth"),
        (&format!("agent:a:chat:group:{}", "x".repeat(600)), "longer than"),
    ];
    for (text, why) in cases {
        let error = text.parse::<SessionKey>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!(SessionKey::subagent("a", UUID, 0).is_err());
}

proptest! {
    /// SES-9: every key round-trips through its text, and two keys never have the same text.
    #[test]
    fn keys_are_lossless(
        agent in "[A-Za-z0-9_.-]{1,12}",
        channel in "[a-z0-9_-]{1,12}",
        group in "[^\\p{Cc}]{1,30}",
        id in any::<u128>(),
        depth in 1..=255u8,
    ) {
        let id = Uuid::from_u128(id).hyphenated().to_string();
        let mut keys = vec![
            SessionKey::main(&agent).unwrap(),
            SessionKey::subagent(&agent, &id, depth).unwrap(),
            SessionKey::sub(&agent, depth, &group).unwrap(),
        ];
        if channel != "subagent" && channel != "sub" {
            keys.push(SessionKey::group(&agent, &channel, &group).unwrap());
        }
        for key in &keys {
            let printed = key.to_string();
            prop_assert_eq!(&printed.parse::<SessionKey>().unwrap(), key);
            prop_assert_eq!(key.agent(), agent.as_str());
            prop_assert_eq!(keys.iter().filter(|other| other.to_string() == printed).count(), 1);
        }
    }

    /// SES-9: any text that parses is printed unchanged.
    #[test]
    fn what_is_read_is_printed(text in "(agent:)?[a-z:0-9-]{0,60}") {
        if let Ok(key) = text.parse::<SessionKey>() {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}
