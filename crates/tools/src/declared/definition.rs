//! Definition of one tool in a file.

use serde::Serialize;
use windlass_core::tool::Category;

use super::Source;
use super::parameter::Parameter;
use super::template::Argument;

/// A tool as declared. The fingerprint covers its serialized form.
#[derive(Debug, Serialize)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) description: String,
    pub(super) category: Category,
    pub(super) cmd: String,
    pub(super) args: Vec<Argument>,
    pub(super) optional_args: Vec<Group>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) env: Vec<Variable>,
    /// Seconds.
    pub(super) timeout: Option<u64>,
    /// True if the tool uses the network. Serialized only when true, for compatibility with older
    /// fingerprints.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) network: bool,
    /// Line of the definition.
    #[serde(skip)]
    pub(super) line: u64,
}

impl Definition {
    pub(super) fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// Arguments that are added only when all their parameters are given.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    /// Parameters that must be given besides those in the arguments. A boolean must be true.
    pub(super) when: Vec<String>,
    pub(super) args: Vec<Argument>,
    #[serde(skip)]
    pub(super) line: u64,
}

/// A variable of the program's environment.
#[derive(Debug, Serialize)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: VariableValue,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VariableValue {
    /// This text.
    Text(String),
    /// Value of this variable of the host.
    Host(String),
}
