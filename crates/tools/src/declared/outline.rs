//! Outline of a declared tool, for the person who decides whether it may run.

use windlass_core::tool::Category;

use super::Source;
use super::definition::{Definition, VariableValue};
use super::template::Argument;

/// Everything a person has to see of a tool before allowing it. Texts are as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Name of the tool.
    pub name: String,
    /// Owner of the file that declares it.
    pub source: Source,
    /// Description for the model.
    pub description: String,
    /// Declared category.
    pub category: Category,
    /// True if the tool uses the network.
    pub network: bool,
    /// Variables set for the program; `${NAME}` passes on one of the user's.
    pub env: Vec<(String, String)>,
    /// The program and its arguments, with templates as written.
    pub command: Vec<String>,
    /// Arguments that are added when their parameters are given.
    pub optional: Vec<Vec<String>>,
    /// Every text that reaches the program unchanged: the program itself, and arguments and variables without
    /// a template.
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

    /// SAFE-6: the outline shows everything that determines what runs.
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
