//! `windlass "fix the test"`: a session that starts with a message.

use clap::CommandFactory;
use windlass_api::command_line;
use windlass_config::Problem;

use crate::exit::Exit;
use crate::{exec, interactive, terminal_ui};
use windlass_args::{Cli, ExecOptions, FrontOptions, OutputFormat};

/// Runs a session in the terminal that starts with these words. Without a terminal, and with options that are for
/// one answer, it is `windlass exec`.
pub(crate) async fn run(
    words: Vec<String>,
    options: &ExecOptions,
    front: &FrontOptions,
) -> Result<Exit, Problem> {
    if let Some(name) = help(&words) {
        return crate::print_text(&name?);
    }
    check(&words)?;
    let output = &options.output;
    let is_for_one_answer = output.format() != OutputFormat::Text
        || output.output_schema.is_some()
        || output.output_last_message.is_some()
        || options.goal.require_done
        || options.goal.goal.is_some();
    let text = words.join(" ");
    if is_for_one_answer || !terminal_ui::is_possible() || command_line(&text).is_some() {
        return exec::exec(&words, options).await;
    }
    interactive::interactive(options, front, Some(text)).await
}

/// Returns the text of `windlass help [COMMAND]`.
fn help(words: &[String]) -> Option<Result<String, Problem>> {
    let (first, rest) = words.split_first()?;
    if first != "help" || rest.len() > 1 {
        return None;
    }
    let mut cli = Cli::command();
    Some(match rest.first() {
        None => Ok(cli.render_long_help().to_string()),
        Some(name) => match cli.find_subcommand_mut(name) {
            Some(command) => Ok(command.render_long_help().to_string()),
            None => Err(Problem::usage(format!(
                "there is no command `{name}`: see `windlass --help`"
            ))),
        },
    })
}

/// Rejects words that are meant as a command: a prompt costs money.
fn check(words: &[String]) -> Result<(), Problem> {
    let Some(first) = words.first() else { return Ok(()) };
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    if names.contains(&first.as_str()) {
        return Err(Problem::usage(format!(
            "options come after the command: `windlass {first} …`. To send it as a prompt: `windlass -p \"{first} …\"`"
        )));
    }
    let is_alone = words.len() == 1;
    let is_near = |name: &&&str| match is_alone {
        true => strsim::damerau_levenshtein(name, first) <= 1 + name.len() / 7,
        // A sentence may start with a short word, such as `can` or `do`.
        false => name.len() > 3 && strsim::damerau_levenshtein(name, first) <= 1,
    };
    let near = names
        .iter()
        .find(is_near)
        .filter(|_| !first.contains(char::is_whitespace));
    let prompt = match is_alone {
        true => first.clone(),
        false => format!("\"{first} …\""),
    };
    match near {
        Some(name) => Err(Problem::usage(format!(
            "there is no command `{first}`; did you mean `{name}`? To send it as a prompt: `windlass -p {prompt}`"
        ))),
        None => Ok(()),
    }
}
