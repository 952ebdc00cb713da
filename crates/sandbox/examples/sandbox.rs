//! The sandbox on its own, for tests and measurements: `sandbox run <policy> -- program args…` runs a program
//! in a sandbox with a policy in JSON, with this program as the helper.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use windlass_sandbox::{self as sandbox, Launch, Sandbox, SandboxPolicy};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == sandbox::HELPER => sandbox::enter(args),
        Some(first) if first == "run" => match run(args.collect()) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "the sandbox could not be set up: {error}");
                ExitCode::from(126)
            }
        },
        _ => ExitCode::from(2),
    }
}

fn run(args: Vec<std::ffi::OsString>) -> Result<u8, Box<dyn std::error::Error>> {
    let [policy, mark, program, arguments @ ..] = args.as_slice() else {
        return Err("name a policy and a program".into());
    };
    if mark != "--" {
        return Err("write -- before the program".into());
    }
    let policy: SandboxPolicy = serde_json::from_slice(policy.as_encoded_bytes())?;
    let sandbox = Sandbox::with_helper(policy, &std::env::current_exe()?)?;
    let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let start = Launch {
        program: Path::new(program),
        arguments: &arguments,
        cwd: &std::env::current_dir()?,
        env: &std::env::vars().collect(),
    };
    let streams = [
        std::io::stdin().as_fd().try_clone_to_owned()?,
        std::io::stdout().as_fd().try_clone_to_owned()?,
        std::io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let [input, output, errors] = &streams;
    let mut confined = sandbox.start(start, [input.as_fd(), output.as_fd(), errors.as_fd()])?;
    Ok(confined
        .wait()?
        .code()
        .and_then(|code| code.try_into().ok())
        .unwrap_or(125))
}
