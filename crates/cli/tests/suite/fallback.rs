//! Other models that stand in, and keys from the keyring.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::SimServer;

use super::support::{script, with_replies, workspace};

/// PROV-13: after the retries, the next model answers; this is said, booked for the model that answered, and the
/// first one is used again as soon as it answers.
#[test]
fn another_model_stands_in() {
    for fault in [Fault::status(529), Fault::status(429), Fault::status(503)] {
        let first = SimServer::script(script([
            Reply::default().fault(fault.clone()),
            Reply::default().fault(fault),
            Reply::text("back"),
        ]));
        let second = SimServer::script(script([
            Reply::call("bash", json!({ "command": "echo from the second" })),
            Reply::text("helped"),
        ]));
        let workspace = workspace();
        let more = format!(
            "\n[providers.other]\nwire = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"sim-2\"\n\n\
             [models.\"sim-2\"]\nprice.input = 2.0\nprice.output = 4.0\n",
            second.url()
        );
        workspace.use_sim_with(&first, Protocol::Anthropic, &more);
        let flags = [
            "-c",
            "fallback=[\"other/sim-2\"]",
            "-c",
            "retry.max_retries=0",
            "-c",
            "retry.fallback_secs=0",
        ];
        let run = |args: &[&str]| {
            let output = workspace.run(&[args, &flags].concat()).output();
            output.assert_code(0);
            output
        };
        let output = run(&["exec", "-o", "json", "go"]);
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(
            (&result["result"], &result["model"]),
            (&json!("helped"), &json!("sim-2"))
        );
        assert!(
            result["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0),
            "{result}"
        );
        assert!(
            output.stderr.contains("continuing with other/sim-2"),
            "{}",
            output.stderr
        );
        assert!(
            output.stderr.contains("nothing is cached there"),
            "{}",
            output.stderr
        );
        second.assert_valid();
        let output = run(&["exec", "--continue", "again"]);
        assert_eq!(output.stdout, "back\n");
        assert!(output.stderr.contains("sim-1 ·"), "{}", output.stderr);
        first.assert_valid();
        let cost = workspace.run(&["sessions", "cost", "--by", "model"]).output();
        assert!(cost.stdout.contains("sim-2"), "{}", cost.stdout);
    }
    // A refused key is not an outage.
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::default().fault(Fault::status(401))]);
    let output = workspace
        .run(&["exec", "hi", "-c", "fallback=[\"sim/sim-1\"]"])
        .output();
    output.assert_code(8);
    let wrong = workspace
        .run(&["exec", "hi", "-c", "fallback=[\"sim\"]"])
        .output();
    wrong.assert_code(3);
    assert!(wrong.stderr.contains("provider/model"), "{}", wrong.stderr);
}

/// PROV-11: the keyring of the system is a source of keys; one without a key, or none at all, is said.
#[test]
fn a_key_from_the_keyring() {
    let sim = SimServer::script(script([Reply::text("opened")]));
    let workspace = workspace();
    workspace.config(&format!(
        "provider = \"vault\"\n[providers.vault]\nwire = \"anthropic-messages\"\nbase_url = \"{}\"\n\
         model = \"sim-1\"\nkey_env = \"NO_SUCH_KEY\"\n",
        sim.url()
    ));
    let program = workspace.write(
        "bin/secret-tool",
        "#!/bin/sh\n[ \"$*\" = \"$EXPECTED\" ] && echo ring-key\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        workspace.path().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let ask = |expected: &str, bus: &str| {
        let run = workspace
            .run(&["exec", "hi"])
            .env("PATH", &path)
            .env("EXPECTED", expected);
        run.env("DBUS_SESSION_BUS_ADDRESS", bus).output()
    };
    let output = ask("lookup service windlass account vault", "unix:path=/nowhere");
    output.assert_code(0);
    assert_eq!(sim.requests().len(), 1);
    let output = ask("nothing", "unix:path=/nowhere");
    output.assert_code(8);
    assert!(output.stderr.contains("NO_SUCH_KEY"), "{}", output.stderr);
    assert!(
        output.stderr.contains("the keyring has none"),
        "{}",
        output.stderr
    );
    let output = ask("nothing", "");
    output.assert_code(8);
    assert!(
        output.stderr.contains("no keyring is running"),
        "{}",
        output.stderr
    );
}

/// PROV-11: a key of white space is no key.
#[test]
fn a_blank_key_is_no_key() {
    let workspace = workspace();
    let output = workspace
        .run(&["exec", "hi", "--provider", "anthropic"])
        .env("ANTHROPIC_API_KEY", "\t ")
        .output();
    output.assert_code(8);
    assert!(
        output.stderr.contains("no key for provider `anthropic`"),
        "{}",
        output.stderr
    );
}

/// PROV-11: an address without encryption on another machine is reported.
#[test]
fn an_open_line_is_reported() {
    let workspace = workspace();
    let run = |host: &str| {
        workspace.config(&format!(
            "provider = \"x\"\nretry.max_retries = 0\n[providers.x]\nwire = \"openai-chat\"\nmodel = \"m\"\n\
             base_url = \"http://{host}\"\n"
        ));
        let output = workspace.run(&["exec", "hi"]).output();
        output.assert_code(8);
        output.stderr
    };
    let said = run("some-host.invalid:8080/v1");
    assert!(
        said.contains("http://some-host.invalid:8080/v1 is not encrypted"),
        "{said}"
    );
    for host in ["localhost:1/v1", "127.0.0.1:1"] {
        let said = run(host);
        assert!(!said.contains("not encrypted"), "{said}");
    }
}

/// LOOP-10: a setting offers `done` everywhere, and a `done` without a message ends with the text beside it.
#[test]
fn done_without_a_message() {
    let reply = Reply::text("All tests pass.").and_call("done", json!({}));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [reply, Reply::text("never asked")]);
    let output = workspace.run(&["exec", "go", "-c", "tools.done=true"]).output();
    output.assert_code(0);
    assert_eq!(output.stdout, "All tests pass.\n");
    assert_eq!(sim.requests().len(), 1);
}
