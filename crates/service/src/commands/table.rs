//! The built-in commands, in the order of the help.

use super::complete::Complete;
use super::{
    Command, Said, Stop, Then, checkpoint, context, cost, goal, help, model, rewind, session, status, why,
};

#[rustfmt::skip]
pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: "help",
        aliases: &[],
        arguments: "[command]",
        help: "List the commands, or say how one is written",
        complete: Complete::Commands,
        run: |cx, words| Box::pin(help::help(cx, words)),
    },
    Command {
        name: "status",
        aliases: &[],
        arguments: "",
        help: "Say how this session stands: model, mode, folder, context, cost, queue, checkpoints",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(status::status(cx, words)),
    },
    Command {
        name: "why",
        aliases: &[],
        arguments: "",
        help: "Say what the running turn waits for, since when, and what would end that",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(why::why(cx, words)),
    },
    Command {
        name: "session",
        aliases: &["sessions"],
        arguments: "[show [S] | list [N] | new [name] | resume S | name NAME | fork | delete S --yes | export [markdown|json] | search WORDS]",
        help: "Look at sessions and go from one to another; S is an id, its beginning, or a name",
        complete: Complete::Session,
        run: |cx, words| Box::pin(session::session(cx, words)),
    },
    Command {
        name: "clear",
        aliases: &["new"],
        arguments: "",
        help: "Begin a new session in this folder; this one stays",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(session::clear(cx, words)),
    },
    Command {
        name: "rename",
        aliases: &[],
        arguments: "NAME",
        help: "Give this session a name to call it by",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(session::rename(cx, words)),
    },
    Command {
        name: "compact",
        aliases: &[],
        arguments: "",
        help: "Have the model sum up the conversation so far, and go on from the summary",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(async move {
            words.check(0, &[])?;
            cx.wait_for_turn()?;
            Ok(Said { text: "Making the conversation smaller…".to_owned(), then: Then::Summarize })
        }),
    },
    Command {
        name: "goal",
        aliases: &[],
        arguments: "[TEXT | clear]",
        help: "Say what this session is to reach, set that, or take it away; no model is told of it",
        complete: Complete::Words(&["clear"]),
        run: |cx, words| Box::pin(goal::goal(cx, words)),
    },
    Command {
        name: "done",
        aliases: &[],
        arguments: "",
        help: "Note that the goal was reached; your next message is a new one",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(goal::done(cx, words)),
    },
    Command {
        name: "shell",
        aliases: &[],
        arguments: "COMMAND",
        help: "Run a command of yours here, and show its output to the model with your next message",
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
        help: "List the providers, or have another one asked from the next turn on",
        complete: Complete::Providers,
        run: |cx, words| Box::pin(model::provider(cx, words)),
    },
    Command {
        name: "model",
        aliases: &[],
        arguments: "[NAME|PROVIDER/NAME]",
        help: "Say which model is asked, or have another one asked from the next turn on",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(model::model(cx, words)),
    },
    Command {
        name: "connect",
        aliases: &[],
        arguments: "[PROVIDER]",
        help: "List every provider there is, and how to set one up",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(model::connect(cx, words)),
    },
    Command {
        name: "cost",
        aliases: &["usage"],
        arguments: "[session|model|cause|day] [--all]",
        help: "Say what this session has cost, or all sessions, row by row",
        complete: Complete::Words(&["session", "model", "cause", "day"]),
        run: |cx, words| Box::pin(cost::cost(cx, words)),
    },
    Command {
        name: "context",
        aliases: &[],
        arguments: "[show [--all] | ledger | pin N | evict N [--yes]]",
        help: "Say what is in the next request, byte for byte, or why requests missed the provider's cache; keep or drop a row",
        complete: Complete::Words(&["show", "ledger", "pin", "evict"]),
        run: |cx, words| Box::pin(context::context(cx, words)),
    },
    Command {
        name: "tools",
        aliases: &[],
        arguments: "",
        help: "List what the model can call, and where it comes from",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(status::tools(cx, words)),
    },
    Command {
        name: "permissions",
        aliases: &[],
        arguments: "",
        help: "Say what may run: the mode, the rules, and what you have allowed for good",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(status::permissions(cx, words)),
    },
    Command {
        name: "mode",
        aliases: &[],
        arguments: "[plan|default|accept-edits|unattended|full]",
        help: "Say how far the agent may go, or change that for this session",
        complete: Complete::Modes,
        run: |cx, words| Box::pin(status::mode(cx, words)),
    },
    Command {
        name: "plan",
        aliases: &[],
        arguments: "",
        help: "Let the agent only read, as /mode plan",
        complete: Complete::Nothing,
        run: |cx, words| Box::pin(status::plan(cx, words)),
    },
    Command {
        name: "checkpoint",
        aliases: &["checkpoints"],
        arguments: "[list | show N | rewind N [--conversation] [--force]]",
        help: "See what turns did to files, and take files back to how they were before one",
        complete: Complete::Words(&["list", "show", "rewind"]),
        run: |cx, words| Box::pin(checkpoint::checkpoint(cx, words)),
    },
    Command {
        name: "undo",
        aliases: &[],
        arguments: "[--conversation] [--force]",
        help: "Take back what the last turn did to files, and with --conversation what was said",
        complete: Complete::Words(&["--conversation", "--force"]),
        run: |cx, words| Box::pin(checkpoint::undo(cx, words)),
    },
    Command {
        name: "redo",
        aliases: &[],
        arguments: "[--force]",
        help: "Do again what was undone last",
        complete: Complete::Words(&["--force"]),
        run: |cx, words| Box::pin(checkpoint::redo(cx, words)),
    },
    Command {
        name: "rewind",
        aliases: &[],
        arguments: "[N] [--keep-files] [--force]",
        help: "Go back to before a message of yours, files included; without a number, list them",
        complete: Complete::Words(&["--keep-files", "--force"]),
        run: |cx, words| Box::pin(rewind::rewind(cx, words)),
    },
    Command {
        name: "exit",
        aliases: &["quit"],
        arguments: "",
        help: "Leave; the session is kept",
        complete: Complete::Nothing,
        run: |_, words| Box::pin(async move {
            words.check(0, &[])?;
            Ok(Said { text: String::new(), then: Then::Leave })
        }),
    },
];
