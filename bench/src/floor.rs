//! The floor: the least any agent must do. Sends recorded requests over one connection, reads each reply to
//! its end, and runs the command that the reply asks for.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use windlass_sandbox::{Confined, Launch, Sandbox};

use crate::record;
use crate::sandbox;
use crate::server::END;
use crate::wire::command;

/// Options of a client.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientOptions {
    /// Port of the server.
    #[arg(long)]
    pub(crate) port: u16,
    /// Recorded requests.
    #[arg(long)]
    pub(crate) requests: PathBuf,
    /// Program that sets up the sandbox for commands.
    #[arg(long)]
    pub(crate) helper: Option<PathBuf>,
}

/// Sends every request and runs a command after each but the last.
pub(crate) fn floor(options: &ClientOptions) -> Result<()> {
    let requests = record::read(&std::fs::read(&options.requests)?)?;
    let sandbox = options.helper.as_deref().map(sandbox::usual).transpose()?;
    let shell = Shell::find(sandbox)?;
    let mut stream = TcpStream::connect(("127.0.0.1", options.port))?;
    stream.set_nodelay(true)?;
    let mut body = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    for (number, request) in requests.iter().enumerate() {
        request.restore(&mut body);
        send(&mut stream, &request.head, &body)?;
        read_reply(&mut stream, &mut buffer)?;
        if number + 1 < requests.len() {
            shell.run(&command(number))?;
        }
    }
    Ok(())
}

fn send(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
    // The head is short, so any bytes the socket did not accept at once belong to the body.
    stream.write_all(body.get(sent.saturating_sub(head.len())..).unwrap_or_default())?;
    Ok(())
}

fn read_reply(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    let mut last = Vec::new();
    loop {
        let count = stream.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        if read.is_empty() {
            bail!("the server closed the connection");
        }
        if read.len() >= END.len() {
            last.clear();
            last.extend_from_slice(read.get(read.len() - END.len()..).unwrap_or_default());
        } else {
            last.extend_from_slice(read);
            last.drain(..last.len().saturating_sub(END.len()));
        }
        if last.as_slice() == END {
            return Ok(());
        }
    }
}

/// A shell started like that of the `bash` tool: same arguments, same environment, same sandbox, one pipe,
/// own process group.
struct Shell {
    program: PathBuf,
    folder: PathBuf,
    variables: BTreeMap<String, String>,
    sandbox: Option<Sandbox>,
}

/// A command of either kind.
enum Running {
    Confined(Confined),
    Direct(Child),
}

impl Shell {
    fn find(sandbox: Option<Sandbox>) -> Result<Self> {
        let path = env::var("PATH").context("PATH is not set")?;
        let programs = path.split(':').map(|folder| PathBuf::from(folder).join("bash"));
        let program = programs
            .into_iter()
            .find(|file| file.is_file())
            .context("there is no bash on PATH")?;
        let handed_on = [
            "PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "TZ",
        ];
        let handed_on = handed_on
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), env::var(name).ok()?)));
        let own = [
            ("AGENT", "windlass"),
            ("AI_AGENT", "windlass@0.1.0"),
            ("WINDLASS_SESSION", "00000000-0000-0000-0000-000000000000"),
            ("WINDLASS_CALL", "00000000000000000000000000000000"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_EDITOR", "true"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ];
        let own = own
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self {
            program,
            folder: env::current_dir()?,
            variables: handed_on.chain(own).collect(),
            sandbox,
        })
    }

    fn run(&self, line: &str) -> Result<()> {
        let (mut reader, writer) = std::io::pipe()?;
        let arguments = ["--noprofile", "--norc", "-c", "--", line];
        let mut running = match &self.sandbox {
            Some(sandbox) => {
                let null = File::open("/dev/null")?;
                let start = Launch {
                    program: &self.program,
                    arguments: &arguments.map(OsStr::new),
                    cwd: &self.folder,
                    env: &self.variables,
                };
                let streams = [null.as_fd(), writer.as_fd(), writer.as_fd()];
                let running = Running::Confined(sandbox.start(start, streams)?);
                drop(writer);
                running
            }
            None => {
                let mut command = Command::new(&self.program);
                command
                    .args(arguments)
                    .current_dir(&self.folder)
                    .env_clear()
                    .envs(&self.variables)
                    .stdin(Stdio::null())
                    .stdout(writer.try_clone()?)
                    .stderr(writer)
                    .process_group(0);
                // The command holds our copies of the writing end until it is dropped.
                Running::Direct(command.spawn()?)
            }
        };
        let mut output = Vec::new();
        reader.read_to_end(&mut output)?;
        let status = match &mut running {
            Running::Confined(confined) => confined.wait()?,
            Running::Direct(child) => child.wait()?,
        };
        if !status.success() || output.is_empty() {
            bail!("`{line}` failed");
        }
        Ok(())
    }
}
