//! The sandbox on its own, for tests and measurements: `sandbox run <policy> -- program args…` runs a program
//! in a sandbox with a policy in JSON, with this program as the helper. `sandbox warden <milliseconds> script` starts a
//! shell with a warden, whose deadline is always that far away.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use windlass_sandbox::{self as sandbox, Launch, Sandbox, SandboxPolicy, Warden, since_boot};

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
        Some(first) if first == "warden" => match with_warden(args.collect()) {
            Ok(never) => match never {},
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "the warden could not be started: {error}");
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

fn with_warden(
    args: Vec<std::ffi::OsString>,
) -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let [far, script] = args.as_slice() else {
        return Err("name milliseconds and a script".into());
    };
    let far = Duration::from_millis(far.to_str().unwrap_or_default().parse()?);
    let helper = std::env::current_exe()?;
    let warden = Warden::with_helper(Some(since_boot() + far), Some(&helper))?;
    let env = sandbox::child_environment(std::env::vars(), Path::new("/nowhere"), "s1");
    Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null())
        .spawn()?;
    let pause = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: i64::from((far / 8).subsec_nanos()),
    };
    loop {
        warden.set_deadline(since_boot() + far)?;
        let _ = rustix::event::poll(&mut [], Some(&pause));
    }
}
