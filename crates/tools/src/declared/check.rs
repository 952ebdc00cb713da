//! Consistency checks within a definition and between definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use windlass_yaml::nearest;

use super::definition::Definition;
use super::file::program_name;
use super::parameter::Parameter;
use super::reader::Reader;
use super::template::Argument;
use crate::{ToolsConfig, builtin};

/// Built-in tools that are not always offered.
const SOMETIMES_BUILT_IN: &[&str] = &[
    "apply_patch",
    "ask_user",
    "fetch",
    "set_working_directory",
    "tool_output",
];
/// Programs that run an argument as code, and the letters of their options for it.
const RUNS_CODE: &[(&str, &[char])] = &[
    ("ash", &['c']),
    ("bash", &['c']),
    ("csh", &['c']),
    ("dash", &['c']),
    ("fish", &['c']),
    ("ksh", &['c']),
    ("sh", &['c']),
    ("su", &['c']),
    ("tcsh", &['c']),
    ("zsh", &['c']),
    ("lua", &['e']),
    ("node", &['e', 'p']),
    ("perl", &['e', 'E']),
    ("php", &['r']),
    ("python", &['c']),
    ("ruby", &['e']),
];
const MAX_NAME: usize = 64;

static BUILT_IN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let config = ToolsConfig {
        offer_done: true,
        ..ToolsConfig::default()
    };
    let sometimes = SOMETIMES_BUILT_IN.iter().map(|name| (*name).to_owned());
    let specs = builtin(&config).specs().into_iter();
    specs.map(|spec| spec.name).chain(sometimes).collect()
});

/// Matches `^[a-z][a-z0-9_]{0,63}$`.
pub(super) fn is_tool_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// Matches names of parameters and variables: `^[A-Za-z_][A-Za-z0-9_]{0,63}$`.
pub(super) fn is_parameter_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Returns the problem with the name of a variable, if any.
pub(super) fn variable_name(name: &str) -> Option<&'static str> {
    if !is_parameter_name(name) {
        return Some("must be a name of letters, digits and _, not starting with a digit");
    }
    match name {
        "PATH" => Some("cannot be set; give the full path of the program in `cmd`"),
        "AGENT" | "AI_AGENT" => Some("cannot be set; Windlass sets it"),
        name if name.starts_with("WINDLASS_") => {
            Some("cannot be set; Windlass sets the variables that start with WINDLASS_")
        }
        _ => None,
    }
}

/// Reports names that occur twice.
pub(super) fn names(reader: &mut Reader<'_>, definitions: &[Definition]) {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for definition in definitions
        .iter()
        .filter(|definition| is_tool_name(&definition.name))
    {
        let (name, line) = (definition.name.as_str(), definition.line);
        if let Some(first) = seen.get(name) {
            reader.wrong(
                line,
                format!("`{name}.name` is taken by the tool on line {first}; choose another"),
            );
        } else {
            seen.insert(name, line);
        }
    }
}

/// Checks one definition. `line_of` returns the line of one of its keys.
pub(super) fn definition(
    reader: &mut Reader<'_>,
    field: &str,
    definition: &Definition,
    line_of: &dyn Fn(&str) -> u64,
) {
    let name = &definition.name;
    if !name.is_empty() && !is_tool_name(name) {
        let shown = super::parameter::shown(name);
        let expected = "lowercase letters, digits and _, starting with a letter, at most 64";
        reader.wrong(
            line_of("name"),
            format!("`{field}.name` must be {expected}, not {shown}"),
        );
    }
    if BUILT_IN.contains(name) {
        let message = format!("`{field}.name` is the name of a built-in tool; choose another");
        reader.wrong(line_of("name"), message);
    }
    if let Some(why) = program(&definition.cmd) {
        reader.wrong(line_of("cmd"), format!("`{field}.cmd` {why}"));
    }
    plain_arguments(reader, field, definition);
    groups(reader, field, definition);
    code(reader, field, definition);
    let used = used(definition);
    for parameter in &definition.parameters {
        let name = parameter.name.as_str();
        if !used.contains(name) {
            let message = format!(
                "`{field}.parameters.{name}` is not used; use `{{{{{name}}}}}` in an argument, or remove it"
            );
            reader.wrong(parameter.line, message);
        }
    }
}

/// Returns the problem with a program, if any.
fn program(cmd: &str) -> Option<&'static str> {
    if cmd.contains("{{") {
        return Some("must be a fixed program; templates belong in `args`");
    }
    if cmd.starts_with('/') {
        return None;
    }
    if cmd.contains(char::is_whitespace) || cmd.contains(['|', '&', ';', '<', '>', '$', '`']) {
        return Some("must be one program, not a shell line; its arguments belong in `args`");
    }
    if cmd.contains('/') || cmd.starts_with('~') {
        return Some("must be the name of a program on PATH, or an absolute path");
    }
    None
}

fn plain_arguments(reader: &mut Reader<'_>, field: &str, definition: &Definition) {
    for (index, argument) in definition.args.iter().enumerate() {
        let place = format!("{field}.args[{index}]");
        templates(reader, &place, argument, definition);
        let optional = argument.parameters().find(|name| {
            let parameter = definition.parameter(name);
            parameter.is_some_and(|parameter| parameter.optional)
        });
        if let Some(name) = optional {
            let message = format!(
                "`{place}` uses `{name}`, which is optional; move it to `optional_args`: \
                 {{ when: {name}, args: […] }}"
            );
            reader.wrong(argument.line, message);
        }
    }
}

fn groups(reader: &mut Reader<'_>, field: &str, definition: &Definition) {
    for (index, group) in definition.optional_args.iter().enumerate() {
        let place = format!("{field}.optional_args[{index}]");
        for (index, argument) in group.args.iter().enumerate() {
            templates(reader, &format!("{place}.args[{index}]"), argument, definition);
        }
        for name in &group.when {
            if definition.parameter(name).is_none() {
                let message = format!(
                    "`{place}.when` names `{name}`, {}",
                    not_declared(name, definition)
                );
                reader.wrong(group.line, message);
            }
        }
        if group.args.is_empty() {
            reader.wrong(
                group.line,
                format!("`{place}.args` is missing; it must be a list of arguments"),
            );
        } else if group.when.is_empty() && group.args.iter().all(|one| one.parameters().next().is_none()) {
            let message =
                format!("`{place}.when` is missing; it must name the parameter that adds the group");
            reader.wrong(group.line, message);
        }
    }
}

/// Checks that the parameters of templates are declared, and that no value selects an option.
fn templates(reader: &mut Reader<'_>, place: &str, argument: &Argument, definition: &Definition) {
    for name in argument.parameters() {
        if definition.parameter(name).is_none() {
            let shown = name.escape_debug();
            let why = not_declared(name, definition);
            reader.wrong(argument.line, format!("`{place}` uses `{{{{{shown}}}}}`, {why}"));
        }
    }
    let may_be_empty = |name: &str| definition.parameter(name).is_none_or(Parameter::may_be_empty);
    let names = argument.names_option(may_be_empty).into_iter();
    let mut named = names.filter_map(|name| definition.parameter(name));
    let open = named.find(|one| !one.is_closed() && !one.allow_leading_dash);
    if let Some(parameter) = open {
        let name = &parameter.name;
        let message = format!(
            "`{place}` lets `{name}` choose an option; give `{name}` an `enum`, or write the option out"
        );
        reader.wrong(argument.line, message);
    }
}

fn not_declared(name: &str, definition: &Definition) -> String {
    let known = definition
        .parameters
        .iter()
        .map(|parameter| parameter.name.as_str());
    match nearest(name, known) {
        Some(near) => format!("which is not a parameter; did you mean `{near}`?"),
        None => "which is not a parameter; add it to `parameters`".to_owned(),
    }
}

/// Refuses a value inside code, which would be run, whatever surrounds it.
fn code(reader: &mut Reader<'_>, field: &str, definition: &Definition) {
    let lists = std::iter::once((format!("{field}.args"), &definition.args));
    let groups = definition.optional_args.iter().enumerate();
    let groups = groups.map(|(index, group)| (format!("{field}.optional_args[{index}].args"), &group.args));
    for (place, arguments) in lists.chain(groups) {
        let mut letters = code_letters(&definition.cmd);
        for (index, pair) in arguments.windows(2).enumerate() {
            let [option, argument] = pair else { continue };
            let literal = option.literal().unwrap_or_default();
            letters = letters.or_else(|| code_letters(literal));
            let takes_code = letters.is_some_and(|letters| takes_code(literal, letters));
            if takes_code && argument.parameters().next().is_some() {
                let message = format!(
                    "`{place}[{}]` is code that would run with values in it; pass them as arguments after the code",
                    index + 1
                );
                reader.wrong(argument.line, message);
            }
        }
    }
}

fn code_letters(program: &str) -> Option<&'static [char]> {
    let name =
        program_name(program).trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let found = RUNS_CODE.iter().find(|(known, _)| *known == name);
    found.map(|(_, letters)| *letters)
}

/// Matches `-c` and `-lc`, but not `--color`.
fn takes_code(option: &str, letters: &[char]) -> bool {
    let cluster = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    cluster.is_some_and(|cluster| cluster.ends_with(letters))
}

fn used(definition: &Definition) -> BTreeSet<&str> {
    let groups = &definition.optional_args;
    let in_groups = groups.iter().flat_map(|group| &group.args);
    let whens = groups
        .iter()
        .flat_map(|group| group.when.iter().map(String::as_str));
    let arguments = definition.args.iter().chain(in_groups);
    arguments.flat_map(Argument::parameters).chain(whens).collect()
}
