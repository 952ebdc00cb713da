//! The built-in commands, in the order of the help.

use super::complete::Complete;
use super::{
    Command, Said, Stop, Then, agents, checkpoint, context, cost, cron, goal, help, model, plan, rewind,
    session, status, why,
};

#[rustfmt::skip]
pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: "help",
        aliases: &[],
        arguments: "[command]",
        help: "List the commands, or explain one",
        complete: Complete::Commands,
        run: |cx, words| Box::pin(help::help(cx, words)),
    },
    Command::plain("status", "Show the status: model, mode, folder, context, cost, queue, checkpoints",
        |cx, words| Box::pin(status::status(cx, words))),
    Command::plain("why", "Show what the running turn is waiting for, since when, and what ends the wait",
        |cx, words| Box::pin(why::why(cx, words))),
    Command {
        name: "session",
        aliases: &["sessions"],
        arguments: "[show [S] | list [N] | new [name] | resume S | name NAME | fork | delete S --yes | export [markdown|json] | search WORDS | move PLACE [FOLDER]]",
        help: "List, search and switch sessions; S is an id, the start of one, or a name",
        complete: Complete::Session,
        run: |cx, words| Box::pin(session::session(cx, words)),
    },
    Command {
        name: "clear",
        aliases: &["new"],
        arguments: "",
        help: "Start a new session in this folder; this one is saved",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(session::clear(cx, words)),
    },
    Command {
        name: "rename",
        aliases: &[],
        arguments: "NAME",
        help: "Name this session",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(session::rename(cx, words)),
    },
    Command::plain("fork", "Continue in a copy of this session; the original is unchanged",
        |cx, words| Box::pin(session::fork(cx, words))),
    Command {
        name: "export",
        aliases: &[],
        arguments: "[FILE]",
        help: "Show this session as Markdown, or write it to a new file; a name that ends with .json gets JSON",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(session::export_to(cx, words)),
    },
    Command {
        name: "compact",
        aliases: &[],
        arguments: "",
        help: "Summarize the conversation so far, and continue from the summary",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(async move {
            words.check(0, &[])?;
            cx.wait_for_turn()?;
            Ok(Said { text: "Compacting the conversation…".to_owned(), then: Then::Summarize })
        }),
    },
    Command {
        name: "goal",
        aliases: &[],
        arguments: "[TEXT | create --auto [--turns N] [--check CMD] [--file PATH] [--ask] [--max-cost USD] TEXT | pause | resume | why | clear]",
        help: "Show, set or clear the goal of this session, or have it worked on without your input (--auto)",
        complete: Complete::Words(&["clear", "create --auto", "pause", "resume", "status", "why"]),
        run: |cx, words| Box::pin(goal::goal(cx, words)),
    },
    Command::plain("done", "Mark the goal as reached; your next message is a new one",
        |cx, words| Box::pin(goal::done(cx, words))),
    Command {
        name: "agents",
        aliases: &["agent"],
        arguments: "[list | types | show N | send N TEXT | stop N | resume N [TEXT] | merge N | discard N]",
        help: "List the agents of this session; steer, stop or resume one, or merge its changes; N is a number or a name",
        complete: Complete::Words(&["list", "types", "show", "send", "stop", "resume", "merge", "discard"]),
        run: |cx, words| Box::pin(agents::agents(cx, words)),
    },
    Command {
        name: "shell",
        aliases: &[],
        arguments: "COMMAND",
        help: "Run a command, and show its output to the model with your next message",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(async move {
            if words.raw.is_empty() {
                return Err(Stop::Usage);
            }
            cx.wait_for_turn()?;
            Ok(Said { text: format!("$ {}", words.raw), then: Then::Shell(words.raw.to_owned()) })
        }),
    },
    Command {
        name: "provider",
        aliases: &["providers"],
        arguments: "[NAME|status]",
        help: "List the providers, or switch to another one from the next turn",
        complete: Complete::Providers,
        run: |cx, words| Box::pin(model::provider(cx, words)),
    },
    Command {
        name: "model",
        aliases: &[],
        arguments: "[NAME|PROVIDER/NAME]",
        help: "Show the model, or switch to another one from the next turn",
        complete: Complete::Models,
        run: |cx, words| Box::pin(model::model(cx, words)),
    },
    Command {
        name: "effort",
        aliases: &[],
        arguments: "[off|low|medium|high]",
        help: "Show how much the model reasons before it answers, or change it from the next turn",
        complete: Complete::Words(&["off", "low", "medium", "high"]),
        run: |cx, words| Box::pin(model::effort(cx, words)),
    },
    Command {
        name: "connect",
        aliases: &["login"],
        arguments: "[PROVIDER]",
        help: "List all known providers, and how to set one up",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(model::connect(cx, words)),
    },
    Command {
        name: "cost",
        aliases: &["usage"],
        arguments: "[session|model|cause|day] [--all]",
        help: "Show the cost of this session, or of all sessions, row by row",
        complete: Complete::Words(&["session", "model", "cause", "day"]),
        run: |cx, words| Box::pin(cost::cost(cx, words)),
    },
    Command {
        name: "context",
        aliases: &[],
        arguments: "[show [--all] | ledger | pin N | evict N [--yes]]",
        help: "Show the content of the next request, or why requests missed the provider's cache; pin or evict a row",
        complete: Complete::Words(&["show", "ledger", "pin", "evict"]),
        run: |cx, words| Box::pin(context::context(cx, words)),
    },
    Command::plain("cron", "List the scheduled jobs: their last and next slots",
        |cx, words| Box::pin(cron::cron(cx, words))),
    Command::plain("tools", "List the model's tools and their sources",
        |cx, words| Box::pin(status::tools(cx, words))),
    Command::of_extension("hooks", &[], "[list | runs | why EVENT]",
        "List the hooks, their last runs, and why one did not run",
        &["list", "runs", "why"]),
    Command::of_extension("skills", &["skill"], "[list | show NAME]",
        "List the skills and where they come from, or show one",
        &["list", "show"]),
    Command::of_extension("mcp", &[], "[list | show SERVER | restart SERVER | enable SERVER | disable SERVER]",
        "List the MCP servers: state, tools and last error; restart or switch one",
        &["list", "show", "restart", "enable", "disable"]),
    Command::of_extension("voice", &[], "[start [microphone|loopback] [SERVER] [NAME=VALUE…] | status | stop]",
        "Speak instead of typing: what an MCP speech server hears becomes your prompts",
        &["start", "status", "stop"]),
    Command::of_extension("memory", &[], "[list | search WORDS | show N | save TEXT | confirm N | pin N | forget N]",
        "Show what is remembered across sessions and what was recalled; search, confirm, pin or forget it",
        &["list", "search", "show", "save", "confirm", "pin", "forget"]),
    Command::plain("permissions", "Show the mode, the rules, and your lasting grants",
        |cx, words| Box::pin(status::permissions(cx, words))),
    Command {
        name: "mode",
        aliases: &[],
        arguments: "[plan|ask|edits|auto|full|unattended]",
        help: "Show the permission mode, or change it for this session",
        complete: Complete::Modes,
        run: |cx, words| Box::pin(status::mode(cx, words)),
    },
    Command {
        name: "plan",
        aliases: &[],
        arguments: "[TEXT | show | edit | drop STEP | export [FILE] | import FILE | go | clear]",
        help: "Have the model plan a task in steps, edit the plan, and carry it out; alone, allow only reads",
        complete: Complete::Words(&["show", "edit", "go", "drop", "export", "import", "clear"]),
        run: |cx, words| Box::pin(plan::plan(cx, words)),
    },
    Command {
        name: "verify",
        aliases: &[],
        arguments: "",
        help: "Run the commands of all claims in this session again, and compare",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(async move {
            words.check(0, &[])?;
            cx.wait_for_turn()?;
            Ok(Said { text: "Verifying…".to_owned(), then: Then::Verify })
        }),
    },
    Command {
        name: "checkpoint",
        aliases: &["checkpoints"],
        arguments: "[list | show N | rewind N [--conversation] [--force]]",
        help: "Show the file changes of turns, and restore files to before one",
        complete: Complete::Words(&["list", "show", "rewind"]),
        run: |cx, words| Box::pin(checkpoint::checkpoint(cx, words)),
    },
    Command {
        name: "undo",
        aliases: &[],
        arguments: "[--conversation] [--force]",
        help: "Undo the file changes of the last turn; --conversation undoes the messages as well",
        complete: Complete::Words(&["--conversation", "--force"]),
        run: |cx, words| Box::pin(checkpoint::undo(cx, words)),
    },
    Command::of_extension("diff", &["changes"], "[N|last|all]",
        "Show the file changes of this session as a diff, or only those of one turn",
        &["last", "all"]),
    Command {
        name: "redo",
        aliases: &[],
        arguments: "[--force]",
        help: "Redo the last undo",
        complete: Complete::Words(&["--force"]),
        run: |cx, words| Box::pin(checkpoint::redo(cx, words)),
    },
    Command {
        name: "rewind",
        aliases: &[],
        arguments: "[N] [--keep-files] [--force]",
        help: "Rewind to before one of your messages, files included; without a number, list them",
        complete: Complete::Words(&["--keep-files", "--force"]),
        run: |cx, words| Box::pin(rewind::rewind(cx, words)),
    },
    Command {
        name: "exit",
        aliases: &["quit"],
        arguments: "",
        help: "Quit; the session is saved",
        complete: Complete::Nothing,
        run: |_, words| Box::pin(async move {
            words.check(0, &[])?;
            Ok(Said { text: String::new(), then: Then::Leave })
        }),
    },
];
