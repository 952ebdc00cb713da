//! Lasting answers, and their limits.

use serde_json::json;

use super::*;
use crate::permission::Blocked;

fn proposal(commands: &[&str]) -> Proposal {
    Proposal {
        call_id: CallId::from("c"),
        tool: "bash".into(),
        category: Category::Admin,
        arguments: json!({ "command": commands.join(" && ") }),
        subjects: commands
            .iter()
            .map(|text| Subject::Command((*text).to_owned()))
            .collect(),
        refusal: None,
        reasons: Vec::new(),
        escalation: Escalation::default(),
        blocked: None,
        cwd: "/work".into(),
        definition: None,
        preview: None,
    }
}

/// SAFE-6: a grant covers exactly the parts that were on the screen.
#[test]
fn a_grant_binds_to_what_was_shown() {
    let push = Grant::of(&proposal(&["git push"]));
    let both = Grant::of(&proposal(&["make", "make test"]));
    let grants = [push, both];
    let covered = |proposal: &Proposal| granted(grants.iter(), proposal);
    assert!(covered(&proposal(&["git push"])));
    assert!(
        covered(&proposal(&["make test", "git push"])),
        "each piece was shown"
    );
    assert!(!covered(&proposal(&["git push --force"])), "another command");
    assert!(!covered(&proposal(&["git push", "curl x"])), "one piece more");
    let changes: [fn(&mut Proposal); 5] = [
        |p| p.cwd = "/elsewhere".into(),
        |p| p.definition = Some("other".into()),
        |p| p.tool = "other".into(),
        |p| p.reasons.push("it reaches the network".into()),
        |p| p.subjects = vec![Subject::Path("git push".into())],
    ];
    for change in changes {
        let mut other = proposal(&["git push"]);
        change(&mut other);
        assert!(!covered(&other), "{other:?}");
    }
    let weaker = Proposal {
        category: Category::Write,
        ..proposal(&["git push"])
    };
    assert!(covered(&weaker), "less effect than was told");
    let small = [Grant::of(&weaker)];
    assert!(
        !granted(small.iter(), &proposal(&["git push"])),
        "more effect than was told"
    );
}

/// SAFE-6: a command line that changes its folder or its environment is covered as a whole only: a part of it means something
/// else elsewhere, and so does the line with another sign between its parts.
#[test]
fn a_grant_keeps_the_folder() {
    for first in [
        "cd build",
        "pushd build",
        "export GIT_DIR=x",
        "GIT_DIR=x",
        "source env.sh",
    ] {
        let line = proposal(&[first, "git clean -fdx"]);
        let grants = [Grant::of(&line), Grant::of(&proposal(&["git status"]))];
        let covered = |proposal: &Proposal| granted(grants.iter(), proposal);
        assert!(covered(&line), "{first}");
        assert!(!covered(&proposal(&["git clean -fdx"])), "{first}");
        assert!(!covered(&proposal(&[first, "git status"])), "{first}");
        let other = Proposal {
            arguments: json!({ "command": format!("{first}; git clean -fdx") }),
            ..line.clone()
        };
        assert!(!covered(&other), "{first}");
    }
    let root = [Grant::of(&proposal(&["git clean -fdx"]))];
    assert!(!granted(root.iter(), &proposal(&["cd /", "git clean -fdx"])));
    // As grants were stored before.
    let mut old = serde_json::to_value(Grant::of(&proposal(&["cd build", "make"]))).unwrap();
    old.as_object_mut().unwrap().remove("whole");
    let old = [serde_json::from_value::<Grant>(old).unwrap()];
    assert!(!granted(old.iter(), &proposal(&["make"])));
}

/// SAFE-6: a grant covers only the access that was shown with it, for every command of a line. Grants stored
/// before access was part of them cover none.
#[test]
fn a_grant_covers_the_access_that_was_shown() {
    let with = |commands: &[&str], network: bool| Proposal {
        escalation: Escalation {
            network,
            outside: false,
            protected: false,
        },
        ..proposal(commands)
    };
    let grants = [
        Grant::of(&with(&["make"], false)),
        Grant::of(&with(&["npm ci"], true)),
    ];
    let covered = |proposal: &Proposal| granted(grants.iter(), proposal);
    assert!(covered(&with(&["make"], false)));
    assert!(covered(&with(&["npm ci"], false)), "less than was shown");
    assert!(covered(&with(&["npm ci"], true)));
    assert!(!covered(&with(&["make"], true)));
    assert!(
        !covered(&with(&["make", "npm ci"], true)),
        "make would get the network"
    );
    let old = json!({"tool": "bash", "cwd": "/work", "category": "admin", "parts": ["command make"]});
    let old: Grant = serde_json::from_value(old).expect("a grant of an earlier version");
    assert!(granted([old.clone()].iter(), &with(&["make"], false)));
    assert!(!granted([old].iter(), &with(&["make"], true)));
}

/// SAFE-6: a grant for a call without parts covers exactly its arguments.
#[test]
fn a_call_without_parts_is_bound_to_its_arguments() {
    let call = |value: i32| Proposal {
        arguments: json!({ "replicas": value }),
        ..proposal(&[])
    };
    let grants = [Grant::of(&call(1))];
    assert!(granted(grants.iter(), &call(1)));
    assert!(!granted(grants.iter(), &call(2)));
    assert!(!granted([].iter(), &call(1)));
}

/// SAFE-6: rules that a person wrote widen the parts of a grant, and neither its effect, its access, its reasons nor its
/// folder; they survive being stored.
#[test]
fn own_rules_widen_the_parts_only() {
    let rules = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<Rule>>()
    };
    let grant = Grant::of(&proposal(&["git status"])).widened(rules(&["bash(git *)", "write_file(src/**)"]));
    assert_eq!(
        grant.rules(),
        rules(&["bash(git *)"]),
        "rules of other tools are left out"
    );
    let stored = serde_json::to_string(&grant).unwrap();
    let grants = [serde_json::from_str::<Grant>(&stored).unwrap()];
    let covered = |proposal: &Proposal| granted(grants.iter(), proposal);
    assert!(covered(&proposal(&["git log"])));
    assert!(!covered(&proposal(&["git log", "make"])), "one piece more");
    let changes: [fn(&mut Proposal); 4] = [
        |p| p.cwd = "/elsewhere".into(),
        |p| p.reasons.push("it reaches the network".into()),
        |p| p.tool = "other".into(),
        |p| {
            p.blocked = Some(Blocked {
                refusal: String::new(),
                is_undoable: false,
            });
        },
    ];
    for change in changes {
        let mut other = proposal(&["git log"]);
        change(&mut other);
        assert!(!covered(&other), "{other:?}");
    }
    let small = [Grant::of(&Proposal {
        category: Category::Read,
        ..proposal(&["git status"])
    })
    .widened(rules(&["bash(git *)"]))];
    assert!(
        !granted(small.iter(), &proposal(&["git push"])),
        "more effect than was shown"
    );
    assert!(serde_json::from_str::<Grant>(&stored.replace("bash(git *)", "bash(")).is_err());
}

#[derive(Default, Clone)]
struct Memory(Arc<Mutex<Vec<Grant>>>);

impl GrantStore for Memory {
    fn all(&self) -> Vec<Grant> {
        self.0.lock().expect("lock").clone()
    }

    fn add(&self, grant: &Grant) -> Result<(), String> {
        self.0.lock().expect("lock").push(grant.clone());
        Ok(())
    }
}

struct Always(Answer);

#[async_trait]
impl Asker for Always {
    async fn ask(&self, _: &Proposal) -> Answer {
        self.0.clone()
    }
}

/// SAFE-6: each answer has the lifetime it states, and a no determines whether the turn continues.
#[tokio::test]
async fn answers_last_as_long_as_they_say() {
    let asked = proposal(&["git push"]);
    for (answer, this_session, next_session) in [
        (Answer::Once, false, false),
        (Answer::Session, true, false),
        (Answer::Always, true, true),
        (Answer::AlwaysFor(Vec::new()), true, true),
    ] {
        let store = Memory::default();
        let first = Granting::new(Always(answer.clone()), Box::new(store.clone()));
        assert!(!first.granted(&asked));
        assert_eq!(first.approve(&asked).await, Ok(()));
        assert_eq!(first.granted(&asked), this_session, "{answer:?}");
        let kept = [Grant::of(&asked)];
        assert_eq!(first.session_grants(), &kept[..usize::from(this_session)]);
        let second = Granting::new(Always(Answer::No), Box::new(store));
        assert_eq!(second.granted(&asked), next_session, "{answer:?}");
    }
    let no = Granting::new(Always(Answer::No), Box::new(Memory::default()));
    let denial = no.approve(&asked).await.expect_err("no");
    assert!(denial.feedback.is_none(), "control returns to the user");
    let note = Answer::NoBecause("use a branch".into());
    let because = Granting::new(Always(note), Box::new(Memory::default()));
    let denial = because.approve(&asked).await.expect_err("no");
    assert!(denial.feedback.is_some_and(|text| text.contains("use a branch")));
}
