//! Reads the command line of one command without building all others, which would take longer than the rest of the
//! start of a run.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Args, Command as Grammar};

use super::{Cli, Command, ExecCommand};

/// Reads the arguments of a command that programs and scripts start often. Returns `None` for every other command,
/// for help, and for mistakes: those need the whole grammar.
pub(crate) fn parse(arguments: &[OsString]) -> Option<Cli> {
    match arguments.get(1)?.to_str()? {
        "exec" => read::<ExecCommand>("exec", arguments, |exec| Command::Exec(Box::new(exec))),
        "acp" => read("acp", arguments, Command::Acp),
        _ => None,
    }
}

fn read<A: Args>(name: &'static str, arguments: &[OsString], command: fn(A) -> Command) -> Option<Cli> {
    let store = Arg::new("store").long("store").global(true);
    let grammar = Grammar::new("windlass")
        .arg(store)
        .disable_help_subcommand(true)
        .subcommand(A::augment_args(Grammar::new(name)));
    let matches = grammar.try_get_matches_from(arguments).ok()?;
    let (_, own): (&str, &ArgMatches) = matches.subcommand()?;
    Some(Cli {
        store: own.get_one("store").cloned(),
        command: Some(command(A::from_arg_matches(own).ok()?)),
        ..Cli::default()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// A command line means the same to the grammar of its command as to the whole one.
    #[test]
    fn one_command_is_read_like_all_of_them() {
        for line in [
            "windlass exec",
            "windlass exec list the files",
            "windlass exec -",
            "windlass exec --provider sim -o json -c agent.max_iterations=3 -- -x",
            "windlass exec --store sqlite:a.db --continue go",
            "windlass exec go --store=b.db --max-turns 4 --max-cost 0.5",
            "windlass exec --resume --fork go",
            "windlass exec --goal x --check true --turns 3",
            "windlass acp --provider sim",
        ] {
            let arguments = arguments(line);
            let whole = Cli::try_parse_from(&arguments).map(|cli| format!("{cli:?}"));
            let alone = parse(&arguments).map(|cli| format!("{cli:?}"));
            assert_eq!(alone, whole.ok(), "{line}");
        }
    }

    /// Help, mistakes and other commands are left to the whole grammar.
    #[test]
    fn everything_else_is_left() {
        for line in [
            "windlass",
            "windlass exec --help",
            "windlass exec --nonsense",
            "windlass --version",
            "windlass doctor",
            "windlass execute",
        ] {
            assert!(parse(&arguments(line)).is_none(), "{line}");
        }
    }
}
