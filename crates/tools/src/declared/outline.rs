//! A declared tool as a person reads it before it may run.

use windlass_core::tool::Category;

use super::Source;
use super::definition::{Definition, VariableValue};
use super::template::Argument;

/// What somebody who is asked about a tool has to see of it. Texts are as the file has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The name.
    pub name: String,
    /// Whose file it is in.
    pub source: Source,
    /// What the model is told.
    pub description: String,
    /// The effect it says it has.
    pub category: Category,
    /// Whether it reaches other machines.
    pub network: bool,
    /// Variables that are set for the program; `${NAME}` passes on one of the user's.
    pub env: Vec<(String, String)>,
    /// The program and its arguments, templates as they are written.
    pub command: Vec<String>,
    /// Arguments that are added when their parameters are given.
    pub optional: Vec<Vec<String>>,
    /// Every text that reaches the program as it is: the program itself, arguments and variables without a template.
    pub fixed: Vec<String>,
}

impl Outline {
    pub(super) fn of(definition: &Definition) -> Self {
        let groups = definition.optional_args.iter().map(|group| &group.args);
        let written =
            |args: &Vec<Argument>| args.iter().map(Argument::as_written).map(str::to_owned).collect();
        let arguments = definition.args.iter().chain(groups.clone().flatten());
        let mut fixed = vec![definition.cmd.clone()];
        fixed.extend(arguments.filter_map(Argument::literal).map(str::to_owned));
        let mut env = Vec::new();
        for variable in &definition.env {
            let value = match &variable.value {
                VariableValue::Text(text) => {
                    fixed.push(text.clone());
                    text.clone()
                }
                VariableValue::Host(name) => format!("${{{name}}}"),
            };
            env.push((variable.name.clone(), value));
        }
        let mut command = vec![definition.cmd.clone()];
        command.extend(written(&definition.args));
        Self {
            name: definition.name.clone(),
            source: definition.source,
            description: definition.description.clone(),
            category: definition.category,
            network: definition.network,
            env,
            command,
            optional: groups.map(written).collect(),
            fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Declarations;
    use super::*;

    /// SAFE-6: what is shown is all that decides what runs.
    #[test]
    fn everything_that_runs_is_shown() {
        let text = "
tools:
  - name: deploy
    description: Deploys.
    category: admin
    cmd: sh
    args: [scripts/deploy.sh, '{{target}}', '{{{{x}}}}']
    optional_args:
      - { when: tag, args: ['--tag={{tag}}', extra.sh] }
    parameters:
      target: { type: string }
      tag: { type: string, optional: true }
    env: { MODE: fast, TOKEN: '${MY_TOKEN}' }
    network: true
";
        let declarations = Declarations::parse(text, "tools.yaml", Source::Project).expect("good");
        let outlines = declarations.outlines();
        let expected = Outline {
            name: "deploy".to_owned(),
            source: Source::Project,
            description: "Deploys.".to_owned(),
            category: Category::Admin,
            network: true,
            env: [("MODE", "fast"), ("TOKEN", "${MY_TOKEN}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            command: ["sh", "scripts/deploy.sh", "{{target}}", "{{{{x}}}}"]
                .map(str::to_owned)
                .to_vec(),
            optional: vec![["--tag={{tag}}", "extra.sh"].map(str::to_owned).to_vec()],
            fixed: ["sh", "scripts/deploy.sh", "{{x}}", "extra.sh", "fast"]
                .map(str::to_owned)
                .to_vec(),
        };
        assert_eq!(outlines, [expected]);
    }
}
