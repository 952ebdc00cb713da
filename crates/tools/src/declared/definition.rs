//! What one entry of a file declares.

use serde::Serialize;
use windlass_core::tool::Category;

use super::Source;
use super::parameter::Parameter;
use super::template::Argument;

/// A tool as declared. What is serialized of it is what its fingerprint stands for.
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
    /// Whether it reaches other machines. Not part of what is serialized when it does not, as in older versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) network: bool,
    /// Where it stands.
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
    /// The value of this variable of ours.
    Host(String),
}
