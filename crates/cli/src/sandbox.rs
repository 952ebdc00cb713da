//! `windlass sandbox`: runs any command in the sandbox.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use windlass_sandbox::{Gap, Launch, Network, Sandbox, child_environment, program};

use crate::args::SandboxOptions;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::tell;
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_host::sandbox_access::SandboxAccess;

/// Runs a command that can write only to this folder and the temporary folder, and returns its exit code.
pub(crate) fn sandbox(options: &SandboxOptions) -> Result<u8, Problem> {
    let Some((program, arguments)) = options.command.split_first() else {
        return Err(Problem::usage(
            "name a command, as in `windlass sandbox -- make test`",
        ));
    };
    let failed = |what: String| Problem::new(ProblemKind::Failed, what);
    let cwd = working_directory(None)?;
    let settings = environment::settings(&options.settings.given(), &cwd)?;
    let access = SandboxAccess::of(&settings, &cwd)?;
    let workspace = access.workspace()?;
    let mut policy = access.policy(&workspace);
    if !workspace.hide_in(&mut policy) {
        tell!("warning: this folder has too many files; some with denied names may be visible");
    }
    policy.write.extend(options.write.iter().cloned());
    if options.network {
        policy.network = Network::On;
    }
    let sandbox = Sandbox::new(policy).map_err(|error| failed(error.to_string()))?;
    for gap in sandbox.gaps() {
        match gap {
            Gap::Open(path) => tell!("warning: {} cannot be protected here", path.display()),
            Gap::Shared => {
                tell!("warning: without namespaces, the command shares processes and /tmp with this machine");
            }
            Gap::Frozen(path) => tell!(
                "warning: nothing new can be created directly in {}",
                path.display()
            ),
        }
    }
    let place =
        find(program).ok_or_else(|| Problem::usage(format!("{program}: command not found on PATH")))?;
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let mut env = child_environment(environment::vars(), &cwd, "");
    if let Some(temp) = sandbox.temp() {
        env.insert("TMPDIR".to_owned(), temp.display().to_string());
    }
    let start = Launch {
        program: &place,
        arguments: &arguments,
        cwd: &cwd,
        env: &env,
    };
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let status = sandbox
        .start(start, [input.as_fd(), output.as_fd(), errors.as_fd()])
        .and_then(|mut confined| confined.wait());
    let status = status.map_err(|error| failed(format!("{program}: {error}")))?;
    let signal = || status.signal().and_then(|signal| u8::try_from(128 + signal).ok());
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.or_else(signal).unwrap_or(Exit::Failed as u8))
}

/// Returns the path of the program: as given if it contains a slash, otherwise found on PATH.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return std::fs::canonicalize(name).ok();
    }
    program::find(name, &environment::var("PATH")?)
}
