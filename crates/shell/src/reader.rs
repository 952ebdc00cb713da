//! State of one analysis: the findings so far and the highest category among them.

use std::collections::HashSet;

use windlass_core::tool::Category;

use super::environment::{self, Effect};
use super::evaluation::Evaluation;
use super::place::Place;
use super::tree::{self, Unreadable};
use super::walk::Walk;
use super::word::{Word, base_name};
use super::{
    Analysis, Blocklist, ListedCommand, Redirect, RedirectKind, Refusal, SandboxFacts, SimpleCommand, Target,
    is_device, is_sink,
};
use super::{blocked, builtins, category, find, interpreters, launchers, wrappers};

const MAX_COMMANDS: usize = 200;
/// Maximum nesting of shell texts inside the text (`sh -c "…"`).
const MAX_NESTED: usize = 8;
/// Maximum number of nested wrappers.
const MAX_WRAPPERS: usize = 16;

/// Name of the rule that refuses listed commands.
const RULE: &str = "security.blocked_commands";

/// Reserved words of bash at the start of a command. As a program name they mean that the syntax tree is
/// wrong.
const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "]]", "((", "))", "if", "then", "elif", "else", "fi", "for", "while", "until", "do",
    "done", "case", "esac", "in", "select", "function", "coproc",
];

/// Reads texts and stores the findings.
pub(super) struct Reader<'r> {
    pub(super) blocklist: &'r Blocklist,
    pub(super) functions: HashSet<String>,
    pub(super) evaluation: Evaluation,
    commands: Vec<SimpleCommand>,
    redirects: Vec<Redirect>,
    write_targets: Vec<String>,
    category: Category,
    refused: Refused,
    texts: usize,
    pub(super) place: Place<'r>,
    input: Inputs,
}

/// Reasons against the command.
#[derive(Default)]
struct Refused {
    /// The first reason.
    refusal: Option<Refusal>,
    blocked: Vec<ListedCommand>,
    /// True if something other than a listed command is refused.
    is_unreadable: bool,
    /// Code in another language, or for another machine, which only rules that deny look into.
    foreign: Vec<String>,
}

/// Code that a program takes from its standard input, and the texts that may be that input.
#[derive(Debug, Default)]
struct Inputs {
    wanted: Vec<Input>,
    texts: Vec<String>,
}

/// Kind of code in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// A program in another language.
    Program,
    /// Commands of an editor or a build tool, which may run others.
    Commands,
    /// A script of sqlite3.
    Sql,
}

impl<'r> Reader<'r> {
    pub(super) fn new(blocklist: &'r Blocklist, facts: &'r SandboxFacts<'r>) -> Self {
        Self {
            blocklist,
            functions: HashSet::new(),
            evaluation: Evaluation::default(),
            commands: Vec::new(),
            redirects: Vec::new(),
            write_targets: Vec::new(),
            category: Category::Read,
            refused: Refused::default(),
            texts: 0,
            place: Place::new(facts),
            input: Inputs::default(),
        }
    }

    /// Reads a text as bash would run it.
    pub(super) fn read(&mut self, text: &str, via: &[String]) {
        self.texts += 1;
        if self.texts > MAX_NESTED + 1 || via.len() > MAX_WRAPPERS {
            self.too_complex();
            return;
        }
        match tree::parse(text) {
            Ok(tree) => Walk::new(self, text, via).read(tree.root_node()),
            Err(Unreadable::TooComplex) => self.too_complex(),
            Err(Unreadable::Syntax(what)) => self.unparsed(&what),
        }
    }

    pub(super) fn finish(mut self) -> Analysis {
        if self.evaluation.runs_code() {
            self.refuse(
                "shell.hidden_code",
                "a quoted text contains a substitution that arithmetic would run. Write the command out."
                    .to_owned(),
            );
        }
        if self.evaluation.evaluates {
            // The value of a variable may come from a file, and may be code.
            self.raise(Category::Write);
        }
        self.judge_inputs();
        if self.category != Category::Read && self.place.leaves() {
            self.raise(Category::Admin);
        }
        let leaves = self.place.leaves();
        let repositories = self.place.repositories();
        if repositories.is_none() {
            // The settings of an unknown repository may name programs that git runs.
            self.raise(Category::Write);
        }
        if self.refused.refusal.is_some() {
            self.raise(Category::Admin);
        }
        Analysis {
            commands: self.commands,
            redirects: self.redirects,
            category: self.category,
            refusal: self.refused.refusal,
            blocked: if self.refused.is_unreadable {
                Vec::new()
            } else {
                self.refused.blocked
            },
            folders: self.place.entered,
            write_targets: self.write_targets,
            foreign: self.refused.foreign,
            repositories: repositories.unwrap_or_default(),
            leaves,
            own_network: self.place.facts.own_network,
        }
    }

    /// Judges the code that programs take from here-documents, here-strings and the text of `echo` or
    /// `printf`.
    fn judge_inputs(&mut self) {
        let Inputs { wanted, mut texts } = std::mem::take(&mut self.input);
        if wanted.is_empty() {
            return;
        }
        let printing = self
            .commands
            .iter()
            .filter(|command| matches!(command.program.as_deref(), Some("echo" | "printf")));
        texts.extend(
            printing.flat_map(|command| command.words.iter().skip(1).map(|word| word.prefix().to_owned())),
        );
        for text in texts {
            let runs = wanted.iter().any(|kind| match kind {
                Input::Program => interpreters::starts_programs(&text),
                Input::Commands => true,
                Input::Sql => launchers::is_running_sql(&text),
            });
            if runs {
                self.foreign_code(&text, Category::Admin);
            }
        }
    }

    /// Records that a program takes code from its standard input.
    pub(super) fn takes_code_from(&mut self, input: Input) {
        self.input.wanted.push(input);
    }

    /// Records the text of a here-document or a here-string.
    pub(super) fn note_input(&mut self, text: &str) {
        self.input.texts.push(text.to_owned());
    }

    /// Records that `git` reads the repository of the current folder.
    pub(super) fn reads_repository(&mut self) {
        self.place.reads_repository = true;
    }

    /// Refuses the whole command; the first reason is kept.
    pub(super) fn refuse(&mut self, rule: &str, why: String) {
        self.refused.is_unreadable |= rule != RULE;
        self.refused.refusal.get_or_insert_with(|| Refusal {
            rule: rule.to_owned(),
            message: format!("Refused ({rule}): {why}"),
        });
    }

    pub(super) fn unparsed(&mut self, what: &str) {
        self.refuse(
            "shell.unparsed",
            format!("the command cannot be parsed: {what}. Write it more simply."),
        );
    }

    pub(super) fn too_complex(&mut self) {
        self.refuse(
            "shell.limits",
            "the command is too complex to check. Split it into several calls, or write a script to a file."
                .to_owned(),
        );
    }

    pub(super) fn unknown_program(&mut self, source: &str) {
        let short: String = source.chars().take(60).collect();
        self.refuse(
            "shell.unknown_program",
            format!(
                "the program that `{short}` would start is only known at run time. Write the command out."
            ),
        );
    }

    /// Records a listed command, as it appears in the text, and what it would act on.
    pub(super) fn blocked(&mut self, entry: &str, shown: &str, targets: Vec<Target>) {
        let would_run = if shown.starts_with(entry) {
            String::new()
        } else {
            format!(", and `{shown}` would run it")
        };
        self.refuse(
            RULE,
            format!("`{entry}` is blocked{would_run}. {}", instead(entry)),
        );
        self.refused.blocked.push(ListedCommand {
            entry: entry.to_owned(),
            targets,
        });
    }

    /// Returns true if a program is refused whatever its arguments.
    pub(super) fn blocks(&self, program: &str) -> bool {
        self.blocklist.hit(program, &[]).is_some()
    }

    /// Records code in another language, or for another machine: refused when it names a blocked command.
    pub(super) fn foreign_code(&mut self, code: &str, needs: Category) {
        if let Some(entry) = self.blocklist.named_in(code) {
            let short: String = code.chars().take(60).collect();
            self.blocked(&entry, &short, vec![Target::Unknown]);
        }
        // As a whole: padding must not hide the rest from the rules. The length of a command line is limited.
        if !code.is_empty() {
            self.refused.foreign.push(code.to_owned());
        }
        self.raise(needs);
    }

    pub(super) fn raise(&mut self, category: Category) {
        if rank(category) > rank(self.category) {
            self.category = category;
        }
    }

    /// Returns true if a variable was given the number of a process that the command line started.
    pub(super) fn is_own_process(&self, name: &str) -> bool {
        let given = [format!("{name}=$!"), format!("{name}=\"$!\"")];
        let mut assignments = self.commands.iter().flat_map(|command| &command.assignments);
        assignments.any(|assignment| given.contains(assignment))
    }

    /// Records an assignment written as `NAME=value`.
    pub(super) fn assigned(&mut self, assignment: &str) {
        let value = environment::split_assignment(assignment).map_or("", |(_, value)| value);
        if environment::is_for_programs(assignment) && category::starts_blocked(self, value) {
            // A program may take it for a command, as git does with a pager.
            self.raise(Category::Admin);
        }
        self.evaluation.evaluates |= environment::is_evaluated(assignment);
        match environment::judge(assignment) {
            Effect::Needs(category) => self.raise(category),
            Effect::Refused => {
                let name = assignment.split_once('=').map_or(assignment, |(name, _)| name);
                self.refuse(
                    "shell.environment",
                    format!("setting `{name}` changes how the shell runs later commands. Leave it as it is."),
                );
            }
        }
    }

    pub(super) fn writes_to(&mut self, path: &str) {
        self.write_targets.push(self.place.path(path));
        if path.starts_with("/dev/") && !is_sink(path) {
            self.raise(Category::Admin);
        }
    }

    pub(super) fn redirect(&mut self, redirect: Redirect) {
        let writes = redirect.kind != RedirectKind::Read;
        match redirect.target.as_deref() {
            Some(target) if writes && target.starts_with("/dev/") && !is_sink(target) => {
                self.raise(Category::Admin);
            }
            // bash opens network connections through some of these paths, and a terminal belongs to the user.
            Some(target) if is_device(&self.place.path(target)) => self.raise(Category::Admin),
            Some(target) if writes && !is_sink(target) => self.raise(Category::Write),
            None if writes => self.raise(Category::Write),
            _ => {}
        }
        if let Some(target) = redirect
            .target
            .as_deref()
            .filter(|target| writes && !is_sink(target))
        {
            self.write_targets.push(self.place.path(target));
        }
        self.redirects.push(redirect);
    }

    /// Records a simple command, and every command that it starts in turn.
    pub(super) fn simple(&mut self, words: Vec<Word>, assignments: Vec<String>, via: &[String]) {
        // For the built-in `read`, word splitting is the only effect of this variable.
        let splits = matches!(
            words.first().and_then(Word::fixed),
            Some("read" | "mapfile" | "readarray")
        );
        for assignment in &assignments {
            if !(splits && assignment.starts_with("IFS=")) {
                self.assigned(assignment);
            }
        }
        if self.commands.len() >= MAX_COMMANDS || via.len() > MAX_WRAPPERS {
            self.too_complex();
            return;
        }
        let Some(first) = words.first() else {
            if !assignments.is_empty() {
                self.push(None, words, assignments, via);
            }
            return;
        };
        let Some(path) = first.fixed().filter(|path| !path.is_empty()).map(str::to_owned) else {
            self.unknown_program(first.source());
            self.push(None, words, assignments, via);
            return;
        };
        let program = base_name(&path).to_owned();
        if program.is_empty() {
            self.refuse(
                "shell.unknown_program",
                format!(
                    "`{}` names a folder, not a program. Write the command out.",
                    first.source()
                ),
            );
        }
        if first.is_bare() && RESERVED.contains(&path.as_str()) || first.source().starts_with('#') {
            self.unparsed(&format!("`{path}` appears where a command is expected"));
        }
        let arguments = words.get(1..).unwrap_or_default().to_vec();
        let text = self.push(Some(program.clone()), words, assignments, via);
        if let Some(entry) = self.blocklist.hit(&program, &arguments) {
            self.blocked(&entry, &text, blocked::targets(&program, &arguments));
        }
        if path.contains('/') && !category::is_standard_path(&path, &program) {
            // A file with the name of a known program may be anything.
            self.raise(Category::Write);
        }
        if via.is_empty() && self.functions.contains(&path) {
            // The function was judged where it is defined, but it may be defined only in another shell.
            self.raise(Category::Write);
            return;
        }
        let mut via = via.to_vec();
        via.push(program.clone());
        if let Some(subcommand) = program.strip_prefix("git-") {
            // git keeps its subcommands as programs of this name in a folder of its own.
            self.raise(Category::Write);
            let mut words = vec![Word::literal("git"), Word::literal(subcommand)];
            words.extend(arguments);
            self.simple(words, Vec::new(), &via);
            return;
        }
        let understood = (!path.contains('/') && builtins::read(self, &program, &arguments, &via))
            || wrappers::read(self, &program, &arguments, &via)
            || find::read(self, &program, &arguments, &via)
            || interpreters::read(self, &program, &arguments, &via);
        if !understood {
            category::judge(self, &path, &program, &arguments, &via);
        }
    }

    fn push(
        &mut self,
        program: Option<String>,
        words: Vec<Word>,
        assignments: Vec<String>,
        via: &[String],
    ) -> String {
        let mut parts: Vec<String> = words.iter().map(Word::text).collect();
        if let (Some(first), Some(program)) = (parts.first_mut(), &program)
            && category::is_standard_path(first, program)
        {
            first.clone_from(program);
        }
        // Unquoted, this would be an assignment or a reserved word, and rules would match something else.
        if let (Some(first), true) = (parts.first_mut(), program.is_some())
            && (first == "{}"
                || RESERVED.contains(&first.as_str())
                || environment::split_assignment(first).is_some())
        {
            *first = format!("'{first}'");
        }
        let text = if words.is_empty() {
            assignments.join(" ")
        } else {
            parts.join(" ")
        };
        self.commands.push(SimpleCommand {
            program,
            words,
            text: text.clone(),
            via: via.to_vec(),
            assignments,
        });
        text
    }
}

fn rank(category: Category) -> u8 {
    match category {
        Category::Read => 0,
        Category::Write => 1,
        Category::Admin => 2,
    }
}

/// Returns the advice for a blocked command.
fn instead(entry: &str) -> &'static str {
    match entry.split_whitespace().next().unwrap_or_default() {
        "rm" => "Move files aside with `mv`, or ask the user to delete them.",
        "sudo" | "doas" | "su" => "Do it without elevated privileges, or ask the user to do it.",
        "chmod" => "Grant only the permissions that are needed, such as `chmod u+x`.",
        "dd" => "Use `head -c`, `cp` or `truncate`.",
        _ => "Ask the user to run it.",
    }
}
