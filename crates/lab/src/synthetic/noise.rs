//! Realistic tool outputs.

use super::random::Random;

/// The tools that look around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Bash,
    ReadFile,
    Grep,
}

/// A named value in an output.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    kind: Kind,
    pub(super) name: String,
    /// The value.
    pub(super) value: String,
    /// True if the agent also repeats it in its own words.
    pub(super) is_repeated: bool,
    /// True if the call names the subject, so that its note can be told from others.
    pub(super) is_named: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Address,
    Failure,
    File,
    Limit,
}

impl Finding {
    pub(super) fn new(random: &mut Random) -> Self {
        let kind = *random.pick(&[Kind::Address, Kind::Failure, Kind::File, Kind::Limit]);
        let name = random.name();
        let number = random.between(10_000, 65_000);
        let value = match kind {
            Kind::Address => format!("127.0.0.1:{number}"),
            Kind::Failure => format!("E{number}"),
            Kind::File => format!("/srv/artifacts/{number:x}/{name}.tar.zst"),
            Kind::Limit => format!("{number} requests"),
        };
        Self {
            kind,
            name,
            value,
            is_repeated: false,
            is_named: false,
        }
    }

    /// Returns the output line with the value.
    fn line(&self) -> String {
        let Self { name, value, .. } = self;
        match self.kind {
            Kind::Address => format!("INFO  {name} listening on {value}"),
            Kind::Failure => format!("error: {name} failed upstream with {value}"),
            Kind::File => format!("INFO  {name} wrote {value}"),
            Kind::Limit => format!("{name}.max_inflight = {value}"),
        }
    }

    /// Returns the user's question about the value.
    pub(super) fn question(&self) -> String {
        let name = &self.name;
        match self.kind {
            Kind::Address => format!("And where was {name} listening?"),
            Kind::Failure => format!("And what did {name} fail with upstream?"),
            Kind::File => format!("And where did {name} write its archive?"),
            Kind::Limit => format!("And what was the limit of {name}?"),
        }
    }

    pub(super) fn answer(&self) -> String {
        format!("For {} it is {}.", self.name, self.value)
    }
}

impl Tool {
    pub(super) fn any(random: &mut Random) -> Self {
        *random.pick(&[Self::Bash, Self::Bash, Self::ReadFile, Self::ReadFile, Self::Grep])
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::ReadFile => "read_file",
            Self::Grep => "grep",
        }
    }

    /// Generates arguments, about `named` or about anything.
    pub(super) fn input(self, random: &mut Random, named: Option<&Finding>) -> String {
        let any = random.name();
        let name = named.map_or(any, |finding| finding.name.clone());
        let input = match self {
            Self::Bash => {
                serde_json::json!({ "command": format!("./run.sh {name} --verbose 2>&1 | tail -200") })
            }
            Self::ReadFile => serde_json::json!({ "path": format!("src/{name}.rs") }),
            Self::Grep => serde_json::json!({ "pattern": name, "path": "src" }),
        };
        input.to_string()
    }

    /// Generates between 200 and 8,000 characters, more often short than long; the value is on a random line.
    pub(super) fn output(self, random: &mut Random, finding: Option<&Finding>) -> String {
        let (once, twice) = (random.below(7_800), random.below(7_800));
        let length = 200 + once.min(twice);
        let mut lines: Vec<String> = Vec::new();
        let mut size = 0;
        while size < length {
            let line = self.line(random, lines.len() + 1);
            size += line.len() + 1;
            lines.push(line);
        }
        if let Some(finding) = finding {
            let place = random.below(lines.len());
            lines.insert(place, finding.line());
        }
        lines.join("\n")
    }

    fn line(self, random: &mut Random, number: usize) -> String {
        const STATES: [&str; 5] = ["ok", "ok", "ok", "skipped", "retried"];
        const CODE: [&str; 6] = [
            "    let pending = self.queue.lock().await.drain(..).collect::<Vec<_>>();",
            "    if attempts >= self.policy.max_attempts {",
            "        return Err(Error::Exhausted { attempts });",
            "    }",
            "",
            "    // The order of these two matters: see the notes on leases.",
        ];
        let name = random.name();
        match self {
            Self::Bash => {
                let (state, millis) = (*random.pick(&STATES), random.below(900));
                format!("test {name}::case_{number} ... {state} ({millis} ms)")
            }
            Self::ReadFile => match random.below(4) {
                0 => format!(
                    "{number:>5}  fn {}(&self) -> Result<(), Error> {{",
                    name.replace('-', "_")
                ),
                _ => format!("{number:>5}  {}", *random.pick(&CODE)),
            },
            Self::Grep => format!(
                "src/{name}.rs:{}: use crate::queue::{{Lease, Pending}};",
                random.below(900)
            ),
        }
    }
}
