//! Memory by meaning: vectors of an embedding server, of another model, and of a model file that cannot be used.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace};

use super::support::{script, workspace};

/// Subjects of texts: words with the same meaning have the same vector.
const SUBJECTS: [&[&str]; 3] = [
    &["release", "ship", "version"],
    &["invoice", "billing"],
    &["picture", "photo"],
];

const NOTE: &str = "Releases are cut every second Thursday.";
const QUESTION: &str = "When do we ship a new version?";

const GOOD: u8 = 0;
const SILENT: u8 = 1;

/// An OpenAI-compatible server of embeddings.
struct Embeddings {
    address: String,
    behavior: Arc<AtomicU8>,
    /// Number of texts that were sent to it.
    texts: Arc<AtomicUsize>,
}

impl Embeddings {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (behavior, texts) = (Arc::new(AtomicU8::new(GOOD)), Arc::new(AtomicUsize::new(0)));
        let (mode, count) = (Arc::clone(&behavior), Arc::clone(&texts));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (mode, count) = (Arc::clone(&mode), Arc::clone(&count));
                std::thread::spawn(move || answer(stream, &mode, &count));
            }
        });
        Self {
            address,
            behavior,
            texts,
        }
    }

    /// Returns a workspace that uses the server.
    fn workspace(&self, sim: &SimServer, model: &str) -> Workspace {
        let workspace = workspace();
        self.use_model(&workspace, sim, model);
        workspace
    }

    fn use_model(&self, workspace: &Workspace, sim: &SimServer, model: &str) {
        let memory = format!(
            "[memory]\nembeddings = \"server\"\nserver = \"{}\"\nserver_model = \"{model}\"\n",
            self.address
        );
        workspace.use_sim_with(sim, Protocol::Anthropic, &memory);
    }
}

/// Answers one request.
fn answer(stream: TcpStream, mode: &AtomicU8, count: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if mode.load(Ordering::SeqCst) == SILENT {
        // Holds the connection until the client gives up.
        let _ = reader.read(&mut [0]);
        return;
    }
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let texts = asked["input"].as_array().unwrap();
    count.fetch_add(texts.len(), Ordering::SeqCst);
    let vector = |text: &Value| -> Vec<f32> {
        let text = text.as_str().unwrap().to_lowercase();
        let about = |words: &&[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        SUBJECTS.iter().map(about).chain([0.01]).collect()
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": vector(text) }))
        .collect();
    let body = json!({ "data": data }).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
}

fn answering() -> SimServer {
    SimServer::script(script([Reply::text("Noted.").forever()]))
}

fn run_within(workspace: &Workspace, limit: &str, args: &[&str]) -> Output {
    workspace
        .run(args)
        .env("WINDLASS_MEMORY_ENABLED", "true")
        .env("WINDLASS_MEMORY_TIME_LIMIT_MS", limit)
        .output()
}

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    run_within(workspace, "60000", args)
}

fn last(sim: &SimServer) -> String {
    sim.requests().last().expect("a request").body.to_string()
}

/// MEM-7, MEM-2, MEM-1: a question without a word of the note finds it by its meaning, in the first turn of a process;
/// without vectors it does not. Vectors of another model are made again and never compared.
#[test]
fn a_question_in_other_words_finds_the_note() {
    let (embeddings, sim) = (Embeddings::start(), answering());
    let workspace = embeddings.workspace(&sim, "first");
    for note in [
        NOTE,
        "The invoice service restarts at night.",
        "Photos are kept for a year.",
    ] {
        run(&workspace, &["memory", "save", note]).assert_code(0);
    }
    let found = run(&workspace, &["memory", "search", QUESTION, "--json"]).json();
    assert_eq!(found[0]["text"], NOTE, "{found}");
    run(&workspace, &["exec", QUESTION]).assert_code(0);
    assert!(last(&sim).contains(NOTE), "{}", last(&sim));
    let stats = run(&workspace, &["memory", "stats", "--json"]).json();
    assert_eq!(stats["vectors"][0][0], "server:first", "{stats}");

    let off = run(
        &workspace,
        &[
            "exec",
            "-c",
            "memory.embeddings=off",
            "When do we ship the next version?",
        ],
    );
    off.assert_code(0);
    assert!(!last(&sim).contains(NOTE), "{}", last(&sim));

    let before = embeddings.texts.load(Ordering::SeqCst);
    embeddings.use_model(&workspace, &sim, "second");
    let found = run(&workspace, &["memory", "search", QUESTION, "--json"]).json();
    let found = found.as_array().unwrap();
    // The question itself was said meanwhile, and comes first.
    assert!(found.iter().any(|unit| unit["text"] == NOTE), "{found:?}");
    let stats = run(&workspace, &["memory", "stats", "--json"]).json();
    let models: Vec<&str> = stats["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].as_str().unwrap())
        .collect();
    assert_eq!(models, ["server:second"], "{stats}");
    assert!(embeddings.texts.load(Ordering::SeqCst) > before + 3);
}

/// MEM-7, MEM-3: a server that does not answer leaves the turn its time limit, and the words of the question; the reason is
/// among the misses.
#[test]
fn a_silent_server_leaves_the_words() {
    let (embeddings, sim) = (Embeddings::start(), answering());
    let workspace = embeddings.workspace(&sim, "m");
    run(&workspace, &["memory", "save", NOTE]).assert_code(0);
    run(&workspace, &["memory", "search", "releases"]).assert_code(0);
    embeddings.behavior.store(SILENT, Ordering::SeqCst);
    run_within(
        &workspace,
        "3000",
        &["exec", "On which Thursday are releases cut?"],
    )
    .assert_code(0);
    assert!(last(&sim).contains(NOTE), "{}", last(&sim));
    let misses = run(&workspace, &["memory", "misses", "--json"]).json();
    let told = misses.as_array().unwrap().iter().any(|miss| {
        miss["strategy"] == "semantic" && miss["error"].as_str().unwrap().contains("no vector within")
    });
    assert!(told, "{misses}");
}

/// MEM-7, MEM-2: a model file that cannot be used is reported once, by sessions and by `windlass memory`; search goes by
/// words.
#[test]
fn a_damaged_model_is_reported_once() {
    let sim = answering();
    let workspace = workspace();
    workspace.use_sim_with(&sim, Protocol::Anthropic, "");
    let models = workspace.home().join("data/models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join("minilm-l6-v2.bin"), "PK not a model").unwrap();
    let said = run(&workspace, &["exec", "The kingfisher module owns billing."]);
    let problem =
        "the model file is of another kind; `windlass memory setup` writes a new one; searching by words";
    assert_eq!(said.assert_code(0).stderr.matches(problem).count(), 1, "{said}");
    let asked = run(&workspace, &["exec", "What does the kingfisher module own?"]);
    assert_eq!(asked.assert_code(0).stderr.matches(problem).count(), 1, "{asked}");
    assert!(last(&sim).contains("kingfisher module owns billing"));
    let searched = run(&workspace, &["memory", "search", "kingfisher"]);
    assert_eq!(
        searched.assert_code(0).stderr.matches(problem).count(),
        1,
        "{searched}"
    );
    assert!(
        searched.stdout.contains("kingfisher module owns billing"),
        "{searched}"
    );
    // The right kind of file, but cut off: noticed when it is read as a whole.
    std::fs::write(models.join("minilm-l6-v2.bin"), "WLMINI01 and nothing more").unwrap();
    let searched = run(&workspace, &["memory", "search", "kingfisher"]);
    searched.assert_code(0).assert_says("the model file is damaged");
    assert!(
        searched.stdout.contains("kingfisher module owns billing"),
        "{searched}"
    );
}
