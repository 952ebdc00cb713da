//! The report of a check, and the names of the rules.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The rules. Reports and the list of exceptions use their kebab-case names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rule {
    CrateEdge,
    CrateBudget,
    Drawing,
    Features,
    Lints,
    WorkspaceDependency,
    LockedSource,
    DependencyCount,
    Syntax,
    FileLength,
    FunctionLength,
    Nesting,
    StructFields,
    TraitMethods,
    EventVariants,
    InlineTests,
    Name,
    PublicName,
    DocComment,
    Anyhow,
    Panic,
    Print,
    Unsafe,
    Platform,
    Port,
    Clock,
    Environment,
    IgnoredTest,
    EmptyAssert,
    TestSleep,
    MachinePath,
    TrailingSpace,
    HtmlString,
    Vendored,
    Exception,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// One violation: its location, the rule, the problem and the fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: Rule,
    pub(crate) message: String,
    /// Item that an exception names in addition to the file: a function, a type, a call. Empty for the whole
    /// file.
    pub(crate) item: String,
    /// Measured size, for rules with a limit.
    pub(crate) size: Option<usize>,
}

impl Finding {
    pub(crate) fn new(rule: Rule, path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            message: message.into(),
            item: String::new(),
            size: None,
        }
    }

    pub(crate) fn about(self, item: impl Into<String>) -> Self {
        Self {
            item: item.into(),
            ..self
        }
    }

    pub(crate) fn sized(self, size: usize) -> Self {
        Self {
            size: Some(size),
            ..self
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.message
        )
    }
}
