//! A SKILL.md file: its front matter and its text.

use std::path::{Path, PathBuf};

use windlass_core::text::one_line;
use windlass_yaml::{Data, Node, TableEntry, key_hint};

use crate::scan::{SkillOrigin, SkillProblem};

/// Maximum length of a description, in characters.
pub const MAX_DESCRIPTION: usize = 1_024;
/// Maximum length of a description with `when_to_use` in the listing.
const MAX_LISTED: usize = 1_536;
/// Maximum length of a name.
const MAX_NAME: usize = 64;
/// Maximum length of `compatibility`.
const MAX_COMPATIBILITY: usize = 500;

/// Keys of the front matter.
const KEYS: [&str; 19] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "model",
    "context",
    "agent",
    "paths",
    "version",
    "hooks",
    "effort",
    "disallowed-tools",
];

/// Keys of other products without an effect here.
const WITHOUT_EFFECT: [&str; 4] = ["hooks", "effort", "disallowed-tools", "shell"];

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name by which people and models call it.
    pub name: String,
    /// Purpose and occasion, on one line.
    pub description: String,
    /// The SKILL.md file.
    pub file: PathBuf,
    /// Folder with the resources of the skill.
    pub folder: PathBuf,
    /// Root that it was found in.
    pub origin: SkillOrigin,
    /// True if its commands, its permissions and its model count.
    pub is_trusted: bool,
    /// Further keys of its front matter.
    pub options: SkillOptions,
    /// The text below the front matter.
    pub body: String,
}

/// Keys of a skill that change how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillOptions {
    /// False if only people start it (`disable-model-invocation`).
    pub by_model: bool,
    /// False if it is no slash command (`user-invocable`).
    pub by_user: bool,
    /// Arguments, for the help.
    pub hint: String,
    /// Names of the arguments.
    pub arguments: Vec<String>,
    /// Calls that need no approval while the skill is active.
    pub allowed_tools: Vec<String>,
    /// Model of the sub-agent that runs it.
    pub model: Option<String>,
    /// True if it runs in a sub-agent (`context: fork`).
    pub fork: bool,
    /// Type of that sub-agent.
    pub agent: Option<String>,
    /// It is offered once a file that fits one of these patterns is used; empty for always.
    pub paths: Vec<String>,
}

impl Default for SkillOptions {
    fn default() -> Self {
        Self {
            by_model: true,
            by_user: true,
            hint: String::new(),
            arguments: Vec::new(),
            allowed_tools: Vec::new(),
            model: None,
            fork: false,
            agent: None,
            paths: Vec::new(),
        }
    }
}

/// Returns true if a name follows the specification.
pub fn is_valid_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(fits)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Reads the text of a SKILL.md file. `None` if the skill cannot be used; `problems` has the reason.
pub fn parse_skill(
    file: &Path,
    text: &str,
    origin: SkillOrigin,
    problems: &mut Vec<SkillProblem>,
) -> Option<Skill> {
    let mut reader = Reader { file, problems };
    let folder = file.parent().unwrap_or(file).to_owned();
    let named = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let (head, body) = reader.split(text)?;
    let mut skill = Skill {
        name: named.clone(),
        description: String::new(),
        file: file.to_owned(),
        folder,
        origin,
        is_trusted: false,
        options: SkillOptions::default(),
        body: body.trim().to_owned(),
    };
    let (mut when, mut is_named) = (String::new(), false);
    for entry in &head {
        is_named |= entry.key == "name";
        match set(&mut skill, &mut when, entry) {
            Ok(None) => {}
            Ok(Some(note)) => reader.warn(Some(entry.line + 1), note),
            Err(expected) => {
                let found = entry.value.describe();
                let text = format!("`{}` is {found}, expected {expected}; ignored", entry.key);
                reader.warn(Some(entry.line + 1), text);
            }
        }
    }
    if !is_named {
        reader.warn(
            Some(1),
            "`name` is missing; the name of its folder is used".to_owned(),
        );
    } else if skill.name != named {
        let text = format!("the name `{}` differs from its folder `{named}`", skill.name);
        reader.warn(line_of(&head, "name"), text);
    }
    if !is_valid_name(&skill.name) {
        let is_usable = !skill.name.is_empty()
            && skill.name.len() <= 2 * MAX_NAME
            && skill
                .name
                .chars()
                .all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'));
        let rule = format!("1 to {MAX_NAME} of a-z, 0-9 and single hyphens between them");
        let line = line_of(&head, "name").or(Some(1));
        if !is_usable {
            return reader.skip(line, format!("`name` must have {rule}"));
        }
        reader.warn(line, format!("the name `{}` should have {rule}", skill.name));
    }
    if skill.description.is_empty() {
        let text = "`description` is missing: without it no model knows when to use the skill".to_owned();
        return reader.skip(line_of(&head, "description").or(Some(1)), text);
    }
    if skill.description.chars().count() > MAX_DESCRIPTION {
        let text = format!("`description` has more than {MAX_DESCRIPTION} characters");
        reader.warn(line_of(&head, "description"), text);
    }
    if !when.is_empty() {
        skill.description = format!("{} {when}", skill.description);
    }
    skill.description = skill.description.chars().take(MAX_LISTED).collect();
    if skill.body.is_empty() {
        reader.warn(None, "there is no text below the front matter".to_owned());
    }
    Some(skill)
}

fn line_of(head: &[TableEntry], key: &str) -> Option<u64> {
    let entry = head.iter().find(|entry| entry.key == key)?;
    Some(entry.line + 1)
}

/// Sets one key. `Some` is a note for the author.
fn set(skill: &mut Skill, when: &mut String, entry: &TableEntry) -> Result<Option<String>, String> {
    let value = &entry.value;
    let options = &mut skill.options;
    match entry.key.as_str() {
        "name" => skill.name = value.text()?.trim().to_owned(),
        "description" => skill.description = one_line(value.text()?),
        "when_to_use" | "when-to-use" => *when = one_line(value.text()?),
        "argument-hint" => options.hint = hint(value)?,
        "arguments" => options.arguments = words(value, "a list of names")?,
        "allowed-tools" => options.allowed_tools = tools(value)?,
        "disable-model-invocation" => options.by_model = !value.flag()?,
        "user-invocable" => options.by_user = value.flag()?,
        "model" => options.model = Some(value.text()?.trim().to_owned()),
        "context" => options.fork = value.choice(&[("fork", true), ("inline", false)])?,
        "agent" => options.agent = Some(value.text()?.trim().to_owned()),
        "paths" => options.paths = words(value, "a list of patterns such as `src/**/*.rs`")?,
        "compatibility" if value.text()?.chars().count() > MAX_COMPATIBILITY => {
            return Ok(Some(format!(
                "`compatibility` has more than {MAX_COMPATIBILITY} characters"
            )));
        }
        "metadata" => {
            let Data::Table(_) = &value.data else {
                return Err("a table of texts".to_owned());
            };
        }
        "license" | "compatibility" | "version" => {}
        key if WITHOUT_EFFECT.contains(&key) => return Ok(Some(format!("`{key}` has no effect here"))),
        key => return Ok(Some(format!("unknown key `{key}`; {}", key_hint(key, &KEYS)))),
    }
    Ok(None)
}

/// YAML reads `[file]` as a list.
fn hint(value: &Node) -> Result<String, String> {
    match &value.data {
        Data::List(items) => {
            let words: Result<Vec<&str>, String> = items.iter().map(Node::text).collect();
            Ok(format!("[{}]", words?.join(", ")))
        }
        _ => Ok(one_line(value.text()?)),
    }
}

/// Reads a list, or words with commas or spaces between them.
fn words(value: &Node, expected: &str) -> Result<Vec<String>, String> {
    let split = |text: &str| -> Vec<String> {
        text.split([',', ' ', '\n'])
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    match &value.data {
        Data::Null => Ok(Vec::new()),
        Data::Text(text) => Ok(split(text)),
        Data::List(items) => items
            .iter()
            .map(|item| {
                item.text()
                    .map(|text| text.trim().to_owned())
                    .map_err(|_| expected.to_owned())
            })
            .collect(),
        _ => Err(expected.to_owned()),
    }
}

/// Reads `allowed-tools`: rules with spaces or commas between them, where a rule may contain both in parentheses.
fn tools(value: &Node) -> Result<Vec<String>, String> {
    let expected = "rules such as `Bash(git:*) Read`";
    let Data::Text(text) = &value.data else {
        return words(value, expected);
    };
    let (mut rules, mut rule, mut depth) = (Vec::new(), String::new(), 0_u32);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter.is_whitespace() || letter == ',') {
            rules.extend(Some(std::mem::take(&mut rule)).filter(|rule| !rule.is_empty()));
        } else {
            rule.push(letter);
        }
    }
    rules.extend(Some(rule).filter(|rule| !rule.is_empty()));
    Ok(rules)
}

struct Reader<'a> {
    file: &'a Path,
    problems: &'a mut Vec<SkillProblem>,
}

impl Reader<'_> {
    fn warn(&mut self, line: Option<u64>, message: String) {
        self.problems.push(SkillProblem {
            file: self.file.to_owned(),
            line,
            message,
            is_fatal: false,
        });
    }

    fn skip<T>(&mut self, line: Option<u64>, message: String) -> Option<T> {
        self.problems.push(SkillProblem {
            file: self.file.to_owned(),
            line,
            message,
            is_fatal: true,
        });
        None
    }

    /// Splits a file into its front matter and its text.
    fn split<'t>(&mut self, text: &'t str) -> Option<(Vec<TableEntry>, &'t str)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_fence = |line: &str| line.trim_end() == "---";
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| is_fence(line)) else {
            let text = "it must start with front matter: `name` and `description` between two lines of `---`";
            return self.skip(Some(1), text.to_owned());
        };
        let begin = first.len();
        let mut end = begin;
        for line in lines {
            if !is_fence(line) {
                end += line.len();
                continue;
            }
            let head = text.get(begin..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Some((self.head(head)?, body));
        }
        self.skip(
            Some(1),
            "the line `---` that ends its front matter is missing".to_owned(),
        )
    }

    fn head(&mut self, head: &str) -> Option<Vec<TableEntry>> {
        if head.trim().is_empty() {
            return Some(Vec::new());
        }
        let node = match Node::read(head) {
            Ok(node) => node,
            // Many files have `description: Use when: …` without quotes.
            Err(error) => match Node::read(&quoted(head)) {
                Ok(node) => {
                    let text = "a value with `: ` in it needs quotes; read as if it had them".to_owned();
                    self.warn(Some(error.line + 1), text);
                    node
                }
                Err(_) => return self.skip(Some(error.line + 1), error.to_string()),
            },
        };
        match node.table(&KEYS) {
            Ok(entries) => Some(entries.to_vec()),
            Err(why) => {
                let text = format!("the front matter is {}, expected {why}", node.describe());
                self.skip(Some(2), text)
            }
        }
    }
}

/// Puts quotes around plain values of top-level keys that contain `: `.
fn quoted(head: &str) -> String {
    let lines = head.lines().map(|line| {
        let is_top = line.starts_with(|letter: char| letter.is_ascii_alphabetic());
        match line.split_once(": ") {
            Some((key, value))
                if is_top
                    && value.contains(": ")
                    && !value.trim_start().starts_with(['"', '\'', '[', '{', '|', '>']) =>
            {
                format!(
                    "{key}: \"{}\"",
                    value.trim().replace('\\', "\\\\").replace('"', "\\\"")
                )
            }
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
