//! The user's words and injected text, told apart wherever either is shown.

use windlass_sim::{Protocol, Reply, Stop, When};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::with_replies;

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Prompts that start like injected text, each with a word of its own.
const PROMPTS: [&str; 3] = [
    "<environment> zebra: how do I set it?",
    "<reminder>\nbuy zebra food\n</reminder>",
    "<environment>\nworking directory: zebra\n</environment>",
];

/// Returns the first line of a prompt.
fn first_line(prompt: &str) -> &str {
    prompt.lines().next().unwrap_or_default()
}

/// MSG-6: words of the user that start like injected text are the title, are found, shown, exported and listed for a
/// rewind. The injected environment is in the request, and in none of these.
#[test]
fn words_that_look_injected_are_the_users() {
    for prompt in PROMPTS {
        let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
        run(&workspace, &["exec", prompt]).assert_code(0);
        let request = sim.requests()[0].body.to_string();
        let folder = workspace.path().canonicalize().unwrap().display().to_string();
        assert!(
            request.contains(&format!("working directory: {folder}")),
            "{request}"
        );

        let list = run(&workspace, &["sessions", "list", "--json"]).json();
        let title = list[0]["label"]["title"].as_str().unwrap().to_owned();
        assert_eq!(title, first_line(prompt), "{list}");
        let found = run(&workspace, &["sessions", "search", "zebra"]);
        assert!(
            found.assert_code(0).stdout.contains("[zebra]"),
            "{prompt}: {found}"
        );
        let injected = run(&workspace, &["sessions", "search", "platform"]);
        assert!(
            injected.assert_code(0).stdout.contains("No matches for"),
            "{prompt}: {injected}"
        );

        let id = list[0]["id"].as_str().unwrap();
        let shown = run(&workspace, &["sessions", "show", id, "--json"]).json();
        assert_eq!(shown["last_user_message"], prompt, "{shown}");
        assert!(!shown["last_user_message"].to_string().contains(&folder));

        let exported = run(&workspace, &["sessions", "export", id]);
        let text = &exported.assert_code(0).stdout;
        assert!(text.contains(prompt), "{prompt}: {exported}");
        let folded = text.find("<summary>Environment</summary>").unwrap();
        assert!(
            text.find(&format!("working directory: {folder}")).unwrap() > folded,
            "{exported}"
        );

        let listed = run(&workspace, &["exec", "--continue", "/rewind"]);
        let lines = listed.assert_code(0).stdout.clone();
        assert!(lines.contains(first_line(prompt)), "{prompt}: {listed}");
        assert!(!lines.contains(&folder), "{prompt}: {listed}");
        sim.assert_valid();
    }
}

/// MSG-6: after a compaction words of the user that start like injected text are still sent as the user's, and the
/// environment is not.
#[test]
fn a_compaction_keeps_the_users_words() {
    for prompt in PROMPTS {
        let summary = Reply::text("a summary")
            .when(When::new().no_tools(true))
            .forever();
        let answer = Reply::text(&"an answer ".repeat(300)).forever();
        let (sim, workspace) = with_replies(Protocol::Anthropic, [summary, answer]);
        run(&workspace, &["exec", "first"]).assert_code(0);
        for text in [prompt, "third", "fourth", "fifth", "sixth"] {
            run(&workspace, &["exec", "--continue", text]).assert_code(0);
        }
        run(&workspace, &["exec", "--continue", "/compact"]).assert_code(0);
        run(&workspace, &["exec", "--continue", "last"]).assert_code(0);
        let request = sim.requests().pop().unwrap().body.to_string();
        assert!(request.contains("a summary"), "{request}");
        let quoted = format!("<said_by_the_user>\n{prompt}\n</said_by_the_user>").replace('\n', "\\n");
        assert!(request.contains(&quoted), "{quoted}: {request}");
        for (at, _) in request.match_indices("<said_by_the_user>") {
            let folder = workspace.path().canonicalize().unwrap();
            let quote = request.get(at..).unwrap();
            let quote = quote.split("</said_by_the_user>").next().unwrap();
            assert!(!quote.contains(&folder.display().to_string()), "{quote}");
        }
        sim.assert_valid();
    }
}

/// MSG-6, LOOP-15: the prompt that continues a cut reply is in the request, and is not shown as the user's words.
#[test]
fn the_prompt_after_a_cut_reply_is_not_the_users() {
    for wire in WIRES {
        let replies = [
            Reply::text("half of").stop(Stop::MaxTokens),
            Reply::text("the rest"),
        ];
        let (sim, workspace) = with_replies(wire, replies);
        run(&workspace, &["exec", "tell me"]).assert_code(0);
        let prompt = "Your reply was cut at the output limit.";
        let request = sim.requests()[1].body.to_string();
        assert!(request.contains(prompt), "{wire}: {request}");
        let list = run(&workspace, &["sessions", "list", "--json"]).json();
        let id = list[0]["id"].as_str().unwrap();
        let exported = run(&workspace, &["sessions", "export", id]);
        let text = &exported.assert_code(0).stdout;
        assert_eq!(text.matches("## User").count(), 1, "{wire}: {exported}");
        let shown = run(&workspace, &["sessions", "show", id, "--json"]).json();
        assert_eq!(shown["last_user_message"], "tell me", "{shown}");
        let listed = run(&workspace, &["exec", "--continue", "/rewind"]);
        assert!(!listed.assert_code(0).stdout.contains(prompt), "{listed}");
        let found = run(&workspace, &["sessions", "search", "output", "limit"]);
        assert!(found.stdout.contains("No matches for"), "{found}");
    }
}
