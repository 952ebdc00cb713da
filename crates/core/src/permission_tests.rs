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
        protected: false,
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
        mode: Mode::Default,
        ask_for_writes: true,
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
        let decision = match policy.decide(&proposal) {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny(_) => "deny",
        };
        assert_eq!(decision, expected, "{proposal:?}");
    }
}

/// SAFE-5: what each mode lets through without a rule.
#[test]
fn modes() {
    let edit = || proposal("edit_file", Category::Write, vec![Subject::Path("a".into())]);
    let command = || proposal("bash", Category::Write, commands(&["make"]));
    let admin = || proposal("bash", Category::Admin, commands(&["mount /x"]));
    let read = || proposal("grep", Category::Read, Vec::new());
    let table = [
        (Mode::Plan, ["allow", "deny", "deny", "deny"]),
        (Mode::Default, ["allow", "allow", "allow", "ask"]),
        (Mode::AcceptEdits, ["allow", "allow", "ask", "ask"]),
        (Mode::Unattended, ["allow", "deny", "deny", "deny"]),
        (Mode::Full, ["allow", "allow", "allow", "allow"]),
    ];
    for (mode, expected) in table {
        let policy = Policy {
            mode,
            ..Policy::default()
        };
        let found = [read(), edit(), command(), admin()].map(|proposal| match policy.decide(&proposal) {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny(_) => "deny",
        });
        assert_eq!(found, expected, "{mode:?}");
    }
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
    call.protected = true;
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Full] {
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
