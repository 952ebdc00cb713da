//! Access beyond the default of a sandboxed command.

/// Access that a command needs beyond what every command gets. Only a person or a rule may grant it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Escalation {
    /// Network access.
    pub network: bool,
    /// Write access outside the workspace. Denied paths stay denied.
    pub outside: bool,
}
