//! Turns a definition into a tool: checks its arguments and runs its program.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_core::tool::{
    AnyTool, Category, Judgement, Prepared, ToolContext, ToolError, ToolOutput, ToolSpec, ToolTraits,
    parse_strict,
};
use windlass_yaml::nearest;

use super::definition::{Definition, VariableValue};
use super::template::{self, Values};
use super::{Fingerprint, ProjectCheck, Source};
use crate::ToolsConfig;
use crate::bash::{KILL_TIME, Keeping, finish};
use windlass_core::permission::Escalation;
use windlass_sandbox::program;
use windlass_sandbox::{Access, CommandSandbox};

/// The tool.
pub(super) struct DeclaredTool {
    definition: Arc<Definition>,
    spec: ToolSpec,
    /// Variables set for the program.
    env: BTreeMap<String, String>,
    /// Variables of the host that the definition names and that are not set.
    unset: Vec<String>,
    timeout: Duration,
    keeping: Keeping,
    sandbox: Arc<CommandSandbox>,
    /// Set for the tools of a project.
    check: Option<ProjectCheck>,
}

impl DeclaredTool {
    pub(super) fn new(
        definition: Arc<Definition>,
        config: &ToolsConfig,
        host_env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let mut env = BTreeMap::new();
        let mut unset = Vec::new();
        for variable in &definition.env {
            let value = match &variable.value {
                VariableValue::Text(text) => Some(text.clone()),
                VariableValue::Host(name) => {
                    let value = host_env(name);
                    if value.is_none() {
                        unset.push(name.clone());
                    }
                    value
                }
            };
            env.extend(value.map(|value| (variable.name.clone(), value)));
        }
        Self {
            spec: spec(&definition),
            env,
            unset,
            timeout: definition
                .timeout
                .map_or(config.command_timeout, Duration::from_secs),
            keeping: Keeping::new(config, &definition.name),
            sandbox: Arc::clone(&config.sandbox),
            check: config
                .project_check
                .clone()
                .filter(|_| definition.source == Source::Project),
            definition,
        }
    }

    /// Returns the checked values, or everything that is wrong with them.
    pub(super) fn values(&self, arguments: &Map<String, Value>) -> Result<Values, Vec<String>> {
        let parameters = &self.definition.parameters;
        let mut values = Values::new();
        let mut wrong = Vec::new();
        for name in arguments.keys() {
            if self.definition.parameter(name).is_none() {
                let known = parameters.iter().map(|parameter| parameter.name.as_str());
                wrong.push(unknown(name, known));
            }
        }
        for parameter in parameters {
            let name = &parameter.name;
            // Some models write every argument, with null for those they do not use.
            match arguments.get(name).filter(|value| !value.is_null()) {
                None if parameter.optional => {}
                None => wrong.push(format!("`{name}`: is missing")),
                Some(value) => match parameter.check(value) {
                    Ok(text) => {
                        values.insert(name.clone(), text);
                    }
                    Err(why) => wrong.push(format!("`{name}`: {why}")),
                },
            }
        }
        if wrong.is_empty() { Ok(values) } else { Err(wrong) }
    }

    async fn run(&self, arguments: Vec<String>, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let name = &self.definition.name;
        if let Some(variable) = self.unset.first() {
            return Err(ToolError::Permanent(format!(
                "{name} passes on the variable {variable}, which is not set. Tell the user."
            )));
        }
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Canceled(String::new()));
        }
        if let Some(Err(why)) = self.check.as_ref().map(ProjectCheck::run) {
            return Err(ToolError::Permanent(format!(
                "{name} was not run, because the project's files are no longer those that the user trusts. Tell the \
                 user.\n{why}"
            )));
        }
        let execution = &cx.execution;
        let cmd = &self.definition.cmd;
        let path = execution.env.get("PATH").map_or("", String::as_str);
        let program = program::find(cmd, path)
            .ok_or_else(|| ToolError::Permanent(format!("The program {cmd} of {name} was not found.")))?;
        let mut env = execution.env.clone();
        env.extend(self.env.clone());
        let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (tree, pipe) = self
            .sandbox
            .spawn(
                &self.access().confirmed(cx.confirmed),
                &program,
                &borrowed,
                &execution.cwd,
                &env,
            )
            .map_err(|error| not_started(&error, &program, &execution.cwd))?;
        let finished = finish(tree, pipe, self.timeout, &self.keeping, &cx).await?;
        let details = json!({
            "program": program.display().to_string(),
            "args": arguments,
            "exit_code": finished.exit_code,
            "duration_ms": finished.duration_ms,
            "truncated": finished.truncated,
        });
        Ok(ToolOutput {
            failed: finished.exit_code != Some(0),
            kept: finished.kept,
            ..ToolOutput::text(finished.content).with_details(details)
        })
    }

    /// Returns the access that the author declared; `admin` tools need approval before each call.
    fn escalation(&self) -> Escalation {
        Escalation {
            network: self.definition.network,
            outside: self.definition.category == Category::Admin,
            protected: false,
        }
    }

    fn access(&self) -> Access {
        Access::of(self.definition.category, self.escalation())
    }

    fn judgement(&self) -> Judgement {
        let mut judgement = Judgement::of(self.definition.category);
        // The network was declared explicitly, so it needs no further approval.
        let escalation = Escalation {
            network: false,
            ..self.escalation()
        };
        let access = Access::of(self.definition.category, escalation);
        self.sandbox.judge(&access, &mut judgement);
        // The definition fixes the access, and a model cannot change it: a rule for the tool covers it.
        judgement.escalation = Escalation::default();
        judgement
    }

    fn invalid(&self, why: &str) -> ToolError {
        ToolError::Invalid(format!("Invalid arguments for {}: {why}", self.definition.name))
    }
}

impl AnyTool for DeclaredTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn definition(&self) -> Option<String> {
        Some(Fingerprint::of(&self.definition).to_string())
    }

    fn traits(&self) -> ToolTraits {
        // The call enforces its own timeout, so that the output so far is not lost.
        ToolTraits {
            timeout: Some(self.timeout + KILL_TIME),
            ..ToolTraits::default()
        }
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let text = if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        };
        let value = parse_strict(text).map_err(|error| {
            self.invalid(&format!(
                "not valid JSON ({error}). Send one JSON object that matches the tool's schema."
            ))
        })?;
        let Value::Object(map) = &value else {
            return Err(self.invalid("send one JSON object that matches the tool's schema."));
        };
        let filled = self
            .values(map)
            .and_then(|values| template::fill(&self.definition, &values))
            .map_err(|wrong| self.invalid(&wrong.join("; ")))?;
        let judgement = self.judgement();
        let words = [std::slice::from_ref(&self.definition.cmd), &filled].concat();
        let preview = format!("{words:?}");
        let prepared = Prepared::new(judgement.category, value, move |cx| {
            Box::pin(async move { self.run(filled, cx).await })
        });
        Ok(prepared.with_judgement(judgement).with_preview(preview))
    }
}

fn spec(definition: &Definition) -> ToolSpec {
    let parameters = &definition.parameters;
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|parameter| (parameter.name.clone(), parameter.schema()))
        .collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| !parameter.optional)
        .map(|parameter| parameter.name.as_str())
        .collect();
    ToolSpec {
        name: definition.name.clone(),
        description: definition.description.trim().to_owned(),
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
        .into(),
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let shown = super::parameter::shown(name);
    if let Some(near) = nearest(name, known.clone()) {
        return format!("{shown}: is not an argument; did you mean `{near}`?");
    }
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        format!("{shown}: is not an argument; there are none")
    } else {
        format!("{shown}: is not an argument; there are {}", known.join(", "))
    }
}

fn not_started(error: &io::Error, program: &Path, cwd: &Path) -> ToolError {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => ToolError::Invalid(
            "The arguments are too long for the system. Write the long values to a file and pass its name."
                .to_owned(),
        ),
        _ if !cwd.is_dir() => {
            ToolError::Permanent(format!("The working directory {} does not exist.", cwd.display()))
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            ToolError::Transient(format!("No process can be started right now: {error}"))
        }
        _ => ToolError::Permanent(format!("{} could not be started: {error}", program.display())),
    }
}
