//! Rules and decisions as tables.

use serde_json::json;

use super::*;

fn proposal(tool: &str, category: Category, subjects: Vec<Subject>) -> Proposal {
    Proposal {
        call_id: CallId::from("c"),
        tool: tool.to_owned(),
        category,
        arguments: json!({}),
        subjects,
        refusal: None,
        reasons: Vec::new(),
        escalation: Escalation::default(),
        blocked: None,
        cwd: PathBuf::from("/work"),
        definition: None,
        preview: None,
    }
}

fn commands(texts: &[&str]) -> Vec<Subject> {
    texts
        .iter()
        .map(|text| Subject::Command((*text).to_owned()))
        .collect()
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().expect("a rule")).collect()
}

/// SAFE-6: what a rule fits, and what it does not.
#[test]
fn patterns() {
    let command = |text: &str| Subject::Command(text.to_owned());
    let path = |text: &str| Subject::Path(text.to_owned());
    let host = |text: &str| Subject::Host(text.to_owned());
    let cases = [
        ("bash(git *)", command("git status"), true),
        ("bash(git *)", command("git"), true),
        ("bash(git *)", command("gitk"), false),
        ("bash(git * --stat)", command("git log --stat"), true),
        ("bash(npm run test)", command("npm run test:all"), false),
        ("bash(npm run test*)", command("npm run test:all"), true),
        ("bash(*)", command("anything at all"), true),
        ("write_file(src/**)", path("src/a/b.rs"), true),
        ("write_file(src/**)", path("src"), true),
        ("write_file(src/**)", path("srcs/a"), false),
        ("write_file(src/*)", path("src/a/b.rs"), false),
        ("write_file(src/*.rs)", path("./src/a.rs"), true),
        ("read_file(./secrets/**)", path("secrets/key"), true),
        ("read_file(/etc/**)", path("/etc/passwd"), true),
        ("fetch(domain:example.com)", host("docs.EXAMPLE.com"), true),
        ("fetch(domain:example.com)", host("example.com"), true),
        ("fetch(domain:example.com)", host("badexample.com"), false),
        ("fetch(example.com)", host("example.com"), false),
        ("bash", command("anything"), true),
    ];
    for (text, subject, expected) in cases {
        let rule: Rule = text.parse().expect("a rule");
        assert_eq!(rule.fits(&subject), expected, "{text} on {subject:?}");
        assert_eq!(rule.to_string(), text);
    }
    assert!(
        "mcp__*"
            .parse::<Rule>()
            .expect("a rule")
            .names("mcp__github__search")
    );
    assert!(!"bash".parse::<Rule>().expect("a rule").names("bash_background"));
}

/// SAFE-6: what is not a rule says what would be.
#[test]
fn bad_rules() {
    for (text, reason) in [
        ("", "letters, digits"),
        ("bash(git *", "closing `)`"),
        ("bash()", "pattern is empty"),
        ("ba sh(x)", "letters, digits"),
        ("(x)", "letters, digits"),
    ] {
        let error = text.parse::<Rule>().expect_err(text).to_string();
        assert!(error.contains(reason) && error.contains("bash(git *)"), "{error}");
    }
}

/// SAFE-6: deny beats ask beats allow; an allowed line needs every piece allowed, a denied one only one
/// piece.
#[test]
fn order_of_rules() {
    let policy = Policy {
        rules: Rules {
            deny: rules(&["bash(curl *)", "read_file(secrets/**)"]),
            ask: rules(&["bash(git push *)"]),
            allow: rules(&["bash(git *)", "bash(cargo test*)", "deploy"]),
        },
        mode: Mode::Auto,
        ask_for_writes: true,
        attended: true,
    };
    let cases = [
        (
            proposal("bash", Category::Write, commands(&["git status"])),
            "allow",
        ),
        (
            proposal(
                "bash",
                Category::Write,
                commands(&["git add .", "cargo test --all"]),
            ),
            "allow",
        ),
        (
            proposal("bash", Category::Write, commands(&["git add .", "make"])),
            "ask",
        ),
        (
            proposal("bash", Category::Write, commands(&["git push origin"])),
            "ask",
        ),
        (
            proposal("bash", Category::Read, commands(&["git log", "curl x"])),
            "deny",
        ),
        (
            proposal(
                "read_file",
                Category::Read,
                vec![Subject::Path("secrets/a".into())],
            ),
            "deny",
        ),
        (
            proposal("read_file", Category::Read, vec![Subject::Path("src/a".into())]),
            "allow",
        ),
        (proposal("deploy", Category::Admin, Vec::new()), "allow"),
        (proposal("bash", Category::Admin, Vec::new()), "ask"),
    ];
    for (proposal, expected) in cases {
        assert_eq!(word(&policy.decide(&proposal)), expected, "{proposal:?}");
    }
}

/// Allowing rules, a tool, the subjects and the access of its call, and the decision.
type Case = (
    &'static [&'static str],
    &'static str,
    Vec<Subject>,
    Escalation,
    &'static str,
);

/// SAFE-6: access to the network or outside the workspace is part of what a rule allows. A rule that does not
/// name it covers only calls that need none, and every command of a line needs a rule that names it.
#[test]
fn a_rule_allows_the_access_it_names() {
    const NETWORK: Escalation = Escalation {
        network: true,
        outside: false,
        protected: false,
    };
    const OUTSIDE: Escalation = Escalation {
        network: false,
        outside: true,
        protected: false,
    };
    const BOTH: Escalation = Escalation {
        network: true,
        outside: true,
        protected: false,
    };
    let none = Escalation::default();
    let path = |text: &str| vec![Subject::Path(text.to_owned())];
    let cases: Vec<Case> = vec![
        (&["bash(npm *)"], "bash", commands(&["npm ci"]), none, "allow"),
        (&["bash(npm *)"], "bash", commands(&["npm ci"]), NETWORK, "ask"),
        (
            &["bash(npm *, network)"],
            "bash",
            commands(&["npm ci"]),
            NETWORK,
            "allow",
        ),
        (
            &["bash(npm *,network)"],
            "bash",
            commands(&["npm ci"]),
            none,
            "allow",
        ),
        (
            &["bash(npm *, network)"],
            "bash",
            commands(&["npm ci"]),
            BOTH,
            "ask",
        ),
        (
            &["bash(npm *, outside , network)"],
            "bash",
            commands(&["npm ci"]),
            BOTH,
            "allow",
        ),
        (&["bash"], "bash", commands(&["npm ci"]), NETWORK, "ask"),
        (&["*"], "bash", commands(&["npm ci"]), OUTSIDE, "ask"),
        (
            &["bash(*, network)"],
            "bash",
            commands(&["npm ci", "ls"]),
            NETWORK,
            "allow",
        ),
        (
            &["bash(npm *, network)", "bash(make)"],
            "bash",
            commands(&["make", "npm ci"]),
            NETWORK,
            "ask",
        ),
        (
            &["bash(echo a, b)"],
            "bash",
            commands(&["echo a, b"]),
            none,
            "allow",
        ),
        (&["write_file"], "write_file", path("/opt/x"), OUTSIDE, "ask"),
        (&["write_file(**)"], "write_file", path("/opt/x"), OUTSIDE, "ask"),
        (
            &["write_file(**, outside)"],
            "write_file",
            path("/opt/x"),
            OUTSIDE,
            "allow",
        ),
        (
            &["write_file(/opt/**)"],
            "write_file",
            path("/opt/x"),
            OUTSIDE,
            "allow",
        ),
        (
            &["write_file(/opt/**)"],
            "write_file",
            path("/etc/x"),
            OUTSIDE,
            "ask",
        ),
        (&["deploy"], "deploy", Vec::new(), OUTSIDE, "ask"),
        (&["deploy(*, outside)"], "deploy", Vec::new(), OUTSIDE, "allow"),
    ];
    for (allow, tool, subjects, escalation, expected) in cases {
        let policy = Policy {
            rules: Rules {
                allow: rules(allow),
                ..Rules::default()
            },
            ..Policy::default()
        };
        let asked = Proposal {
            escalation,
            ..proposal(tool, Category::Admin, subjects)
        };
        assert_eq!(word(&policy.decide(&asked)), expected, "{allow:?} on {asked:?}");
    }
    let written: Rule = "bash(npm *,outside,network)".parse().expect("a rule");
    assert_eq!(written.to_string(), "bash(npm *, network, outside)");

    // In a denying rule, the access is a condition.
    let policy = Policy {
        rules: Rules {
            deny: rules(&["bash(*, network)"]),
            ..Rules::default()
        },
        ..Policy::default()
    };
    for (escalation, expected) in [
        (none, "allow"),
        (OUTSIDE, "allow"),
        (NETWORK, "deny"),
        (BOTH, "deny"),
    ] {
        let asked = Proposal {
            escalation,
            ..proposal("bash", Category::Write, commands(&["make"]))
        };
        assert_eq!(word(&policy.decide(&asked)), expected, "{asked:?}");
    }
}

/// SAFE-6: another spelling of a command can be denied, but never makes it allowed.
#[test]
fn another_spelling_is_denied_and_not_allowed() {
    let mut subjects = commands(&["git -C . push"]);
    subjects.push(Subject::Spelling("git push".to_owned()));
    let push = proposal("bash", Category::Admin, subjects);
    let decide = |deny: &[&str], allow: &[&str]| {
        let policy = Policy {
            rules: Rules {
                deny: rules(deny),
                allow: rules(allow),
                ..Rules::default()
            },
            ..Policy::default()
        };
        word(&policy.decide(&push))
    };
    assert_eq!(decide(&["bash(git push*)"], &["bash"]), "deny");
    assert_eq!(decide(&[], &["bash(git push*)"]), "ask");
    assert_eq!(decide(&[], &["bash(git -C . push)"]), "allow");
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny(_) => "deny",
    }
}

/// SAFE-5, SAFE-11: what each mode lets through without a rule.
#[test]
fn modes() {
    let edit = || proposal("edit_file", Category::Write, vec![Subject::Path("a".into())]);
    let command = || proposal("bash", Category::Write, commands(&["make"]));
    let admin = || proposal("bash", Category::Admin, commands(&["mount /x"]));
    let read = || proposal("grep", Category::Read, Vec::new());
    let table = [
        (Mode::Plan, ["allow", "deny", "deny", "deny"]),
        (Mode::Ask, ["allow", "ask", "ask", "ask"]),
        (Mode::Edits, ["allow", "allow", "ask", "ask"]),
        (Mode::Auto, ["allow", "allow", "allow", "ask"]),
        (Mode::Unattended, ["allow", "deny", "deny", "deny"]),
        (Mode::Full, ["allow", "allow", "allow", "allow"]),
    ];
    for (mode, expected) in table {
        let policy = Policy {
            mode,
            ..Policy::default()
        };
        let found = [read(), edit(), command(), admin()].map(|proposal| word(&policy.decide(&proposal)));
        assert_eq!(found, expected, "{mode:?}");
    }
}

/// SAFE-2: a listed command asks a person, and is refused where there is none, whatever a rule allows; mode
/// `full` runs it if it can be undone.
#[test]
fn a_listed_command_needs_a_person() {
    let listed = |is_undoable| Proposal {
        blocked: Some(Blocked {
            refusal: "`rm` is blocked".into(),
            is_undoable,
        }),
        ..proposal("bash", Category::Admin, commands(&["rm x"]))
    };
    for (mode, attended, is_undoable, expected) in [
        (Mode::Auto, true, true, "ask"),
        (Mode::Auto, false, true, "deny"),
        (Mode::Ask, true, true, "ask"),
        (Mode::Edits, true, true, "ask"),
        (Mode::Plan, true, true, "deny"),
        (Mode::Unattended, true, true, "deny"),
        (Mode::Full, true, true, "allow"),
        (Mode::Full, false, true, "allow"),
        (Mode::Full, true, false, "ask"),
        (Mode::Full, false, false, "deny"),
    ] {
        let policy = Policy {
            rules: Rules {
                allow: rules(&["bash", "bash(rm *)"]),
                ..Rules::default()
            },
            mode,
            attended,
            ..Policy::default()
        };
        let decision = policy.decide(&listed(is_undoable));
        assert_eq!(word(&decision), expected, "{mode:?} {attended} {is_undoable}");
        if let Decision::Deny(denial) = decision {
            assert_eq!(denial.feedback.as_deref(), Some("`rm` is blocked"));
        }
    }
}

/// SAFE-6: the rules suggested for a call would allow it, and none are suggested where none help.
#[test]
fn suggested_rules_help() {
    let network = Escalation {
        network: true,
        outside: false,
        protected: false,
    };
    let push = Proposal {
        escalation: network,
        ..proposal(
            "bash",
            Category::Admin,
            commands(&["git push && x", "curl 'a, b'"]),
        )
    };
    let policy = Policy::default();
    let texts = |rules: Vec<Rule>| rules.iter().map(Rule::to_string).collect::<Vec<_>>();
    assert_eq!(
        policy.allowing(&push).map(texts),
        Some(vec![
            "bash(git push && x, network)".to_owned(),
            "bash(curl 'a, b', network)".to_owned()
        ])
    );
    let outside = Proposal {
        escalation: Escalation {
            network: false,
            outside: true,
            protected: false,
        },
        ..proposal(
            "write_file",
            Category::Admin,
            vec![Subject::Path("/opt/x".into())],
        )
    };
    assert_eq!(
        policy.allowing(&outside).map(texts),
        Some(vec!["write_file(/opt/x)".to_owned()])
    );
    let deploy = proposal("deploy", Category::Admin, Vec::new());
    assert_eq!(
        policy.allowing(&deploy).map(texts),
        Some(vec!["deploy".to_owned()])
    );
    let asking = Policy {
        rules: Rules {
            ask: rules(&["bash"]),
            ..Rules::default()
        },
        ..Policy::default()
    };
    assert_eq!(
        asking.allowing(&push),
        None,
        "a rule asks, and no rule lifts that"
    );
}

/// SAFE-2: what a tool refuses to do is refused in every mode, before any rule, and the model is told why.
#[test]
fn refusals_come_first() {
    let policy = Policy {
        mode: Mode::Full,
        ..Policy::default()
    };
    let refused = Proposal {
        refusal: Some("`rm` is blocked".into()),
        ..proposal("bash", Category::Read, commands(&["rm x"]))
    };
    let Decision::Deny(denial) = policy.decide(&refused) else {
        panic!("it is refused")
    };
    assert_eq!(denial.feedback.as_deref(), Some("`rm` is blocked"));
}

/// SAFE-10, SAFE-5: a call that changes protected files asks in every mode that would run it, whatever rule allows it,
/// and stays denied where the mode denies it.
#[test]
fn protected_files_ask_in_every_mode() {
    let path = Subject::Path(".git/hooks/post-merge".to_owned());
    let mut call = proposal("write_file", Category::Admin, vec![path]);
    call.escalation.protected = true;
    for mode in [Mode::Auto, Mode::Ask, Mode::Edits, Mode::Full] {
        let policy = Policy {
            mode,
            rules: Rules {
                allow: vec!["*".parse().unwrap(), "write_file(.git/hooks/*)".parse().unwrap()],
                ..Rules::default()
            },
            ..Policy::default()
        };
        assert_eq!(policy.decide(&call), Decision::Ask, "{mode:?}");
    }
    for mode in [Mode::Plan, Mode::Unattended] {
        let policy = Policy {
            mode,
            ..Policy::default()
        };
        assert!(matches!(policy.decide(&call), Decision::Deny(_)), "{mode:?}");
    }
}
