//! Sessions work in their own folders, wherever they are resumed from.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_sim::{Reply, Script};
use windlass_testkit::{Output, Run, SimServer, Workspace};

use super::support::{script, workspace};

/// Two trusted projects with a model and a tool each.
struct Two {
    sim: SimServer,
    workspace: Workspace,
    a: PathBuf,
    b: PathBuf,
}

impl Two {
    fn new(script: Script) -> Self {
        let (sim, workspace) = (SimServer::script(script), workspace());
        workspace.config(&format!(
            "provider = \"test\"\n\n[retry]\nmax_delay_secs = 0\n\n\
             [providers.test]\nwire = \"anthropic-messages\"\nbase_url = \"{}\"\n",
            sim.url()
        ));
        let root = workspace.path().canonicalize().unwrap();
        let two = Self {
            a: root.join("a"),
            b: root.join("b"),
            sim,
            workspace,
        };
        fs::create_dir_all(root.join("temp")).unwrap();
        for name in ["a", "b"] {
            let put = |file: &str, text: &str| two.workspace.write(&format!("{name}/{file}"), text);
            put(".windlass/config.toml", &format!("model = \"sim-{name}\"\n"));
            put(
                ".windlass/tools.yaml",
                &format!("tools:\n  - {{ name: only_{name}, description: x, category: read, cmd: pwd }}\n"),
            );
            two.run(&root.join(name), &["trust", "--yes"]).assert_code(0);
        }
        two
    }

    /// Runs in a folder, with a temporary folder that contains neither project.
    fn start(&self, folder: &Path, args: &[&str]) -> Run {
        let temp = self.workspace.path().join("temp").display().to_string();
        self.workspace.run(args).cwd(folder).env("TMPDIR", &temp)
    }

    fn run(&self, folder: &Path, args: &[&str]) -> Output {
        self.start(folder, args).output()
    }

    /// Starts a session in a folder and returns its id.
    fn session(&self, folder: &Path) -> String {
        self.run(folder, &["exec", "hello"]).assert_code(0);
        let listed = self.run(folder, &["sessions", "list", "--json"]);
        let list = listed.assert_code(0).json();
        list[0]["id"].as_str().unwrap().to_owned()
    }

    /// Returns the model of each request.
    fn models(&self) -> Vec<String> {
        let requests = self.sim.requests();
        let model = |body: &serde_json::Value| body["model"].as_str().unwrap_or_default().to_owned();
        requests.iter().map(|request| model(&request.body)).collect()
    }

    #[track_caller]
    fn assert_request_of(&self, number: usize, here: &Path, name: &str, other: &str) {
        let request = &self.sim.requests()[number];
        let body = request.body.to_string();
        assert_eq!(request.body["model"], format!("sim-{name}"), "{body}");
        assert!(
            body.contains(&format!("working directory: {}", here.display())),
            "{body}"
        );
        assert!(
            body.contains(&format!("only_{name}")) && !body.contains(&format!("only_{other}")),
            "{body}"
        );
    }
}

/// SES-15: a session that is resumed from another folder works in its own folder, with the model, trust, tools and
/// sandbox of that folder.
#[test]
fn a_session_works_in_its_own_folder() {
    let two = Two::new(script([
        Reply::text("hello"),
        Reply::call("only_a", json!({})),
        Reply::call("bash", json!({"command": "pwd"}))
            .and_call("write_file", json!({"path": "made.txt", "content": "made\n"}))
            .and_call("bash", json!({"command": "sh leak.sh"})),
        Reply::text("done"),
    ]));
    let leak = format!("touch here; touch {}/leak; true\n", two.b.display());
    two.workspace.write("a/leak.sh", &leak);
    let id = two.session(&two.a);
    let output = two.run(&two.b, &["exec", "-o", "stream-json", "--resume", &id, "go"]);
    output.assert_code(0);
    let results = output.events_of("tool_result");
    let here = two.a.display().to_string();
    for number in [0, 1] {
        assert!(
            results[number]["content"].as_str().unwrap().contains(&here),
            "{output}"
        );
    }
    assert!(two.a.join("made.txt").exists() && !two.b.join("made.txt").exists());
    assert!(
        two.a.join("here").exists() && !two.b.join("leak").exists(),
        "{output}"
    );
    assert_eq!(two.models(), ["sim-a"; 4]);
    two.assert_request_of(3, &two.a, "a", "b");
    two.sim.assert_valid();
}

/// SES-15: a session whose folder is gone is not resumed: the error names the folder, and nothing runs elsewhere. A copy
/// of it works in the folder that it is made from.
#[test]
fn a_folder_that_is_gone_is_named() {
    let two = Two::new(script([
        Reply::text("hello"),
        Reply::call("bash", json!({"command": "pwd"}))
            .and_call("write_file", json!({"path": "made.txt", "content": "made\n"})),
        Reply::text("done"),
    ]));
    let id = two.session(&two.a);
    let away = two.a.with_file_name("away");
    fs::rename(&two.a, &away).unwrap();
    for _ in 0..2 {
        let output = two.run(&two.b, &["exec", "--resume", &id, "go"]);
        output.assert_code(1).assert_says(&format!(
            "the folder of this session is not here: {}",
            two.a.display()
        ));
    }
    assert_eq!(two.sim.count(), 1, "no request was sent");
    let output = two.run(
        &two.b,
        &["exec", "-o", "stream-json", "--resume", &id, "--fork", "go"],
    );
    let results = output.assert_code(0).events_of("tool_result");
    let here = two.b.display().to_string();
    assert!(
        results[0]["content"].as_str().unwrap().contains(&here),
        "{output}"
    );
    assert!(two.b.join("made.txt").exists() && !two.a.exists());
    assert_eq!(two.models(), ["sim-a", "sim-b", "sim-b"]);
    two.assert_request_of(2, &two.b, "b", "a");
    // The copy stays in its folder; the first session works again when its folder is back.
    let copies = two.run(&two.b, &["sessions", "list", "--json"]).json();
    assert_eq!(copies[0]["place"], here.as_str(), "{copies}");
    let model = |which: &[&str]| two.run(&two.b, &[&["exec"], which, &["/model"]].concat());
    assert_eq!(model(&["--continue"]).stdout, "sim-b (provider: test)\n");
    fs::rename(&away, &two.a).unwrap();
    assert_eq!(model(&["--resume", &id]).stdout, "sim-a (provider: test)\n");
}

/// SES-15: one process goes from a session to one of another folder and back: each has its own folder and model, and a
/// model chosen in one is not the other's.
#[test]
fn sessions_of_one_process_have_their_own_models() {
    let two = Two::new(script([Reply::text("fine").forever()]));
    let (a, b) = (two.session(&two.a), two.session(&two.b));
    let lines = format!(
        "in b\n/session resume {a}\nin a\n/model sim-9\nin a again\n/session resume {b}\nback in b\n"
    );
    let output = two
        .start(&two.b, &["--resume", &b])
        .stdin(lines.into_bytes())
        .output();
    output.assert_code(0);
    assert_eq!(
        two.models(),
        ["sim-a", "sim-b", "sim-b", "sim-a", "sim-9", "sim-b"],
        "{output}"
    );
    two.assert_request_of(3, &two.a, "a", "b");
    two.assert_request_of(5, &two.b, "b", "a");
}
