//! UI-6: senders of a channel that several people write to, and those of them who may answer permission requests.

use std::collections::VecDeque;

/// A message of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderMessage {
    /// The text.
    pub text: String,
    /// Name of the person, as the bridge gives it.
    pub sender: Option<String>,
}

/// People who may answer permission requests.
#[derive(Debug, Clone, Default)]
pub struct Approvers(pub Vec<String>);

impl Approvers {
    /// Returns true if a person may answer the requests of a turn that `asker` started: one of the approvers, or the same
    /// person if none are named. Nobody may if it is not known who writes.
    pub fn allow(&self, sender: Option<&str>, asker: Option<&str>) -> bool {
        match (sender, self.0.as_slice()) {
            (None, _) => false,
            (Some(sender), []) => Some(sender) == asker,
            (Some(sender), approvers) => approvers.iter().any(|approver| approver == sender),
        }
    }

    /// Returns true if somebody could answer the requests of such a turn.
    pub fn exist(&self, asker: Option<&str>) -> bool {
        asker.is_some() || !self.0.is_empty()
    }

    /// Returns true if a person may use commands, which can change what asks.
    pub fn command(&self, sender: Option<&str>) -> bool {
        self.0.is_empty() || self.allow(sender, None)
    }

    /// Names them in a sentence.
    pub fn told(&self, asker: Option<&str>) -> String {
        match self.0.as_slice() {
            [] => asker.unwrap_or("nobody").to_owned(),
            approvers => approvers.join(" or "),
        }
    }
}

/// Messages that arrived while a request waited for somebody else.
#[derive(Debug, Default)]
pub struct HeldMessages(VecDeque<SenderMessage>);

impl HeldMessages {
    /// Maximum number of them.
    const MOST: usize = 32;

    /// Keeps a message for after the turn. Returns false if there are too many.
    pub fn keep(&mut self, said: SenderMessage) -> bool {
        let has_room = self.0.len() < Self::MOST;
        if has_room {
            self.0.push_back(said);
        }
        has_room
    }

    /// Returns the oldest of them.
    pub fn take(&mut self) -> Option<SenderMessage> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-6: without approvers, whoever asked may answer; with them, only they; nobody without a name.
    #[test]
    fn answers_come_from_the_right_person() {
        let anybody = Approvers::default();
        assert!(anybody.allow(Some("ann"), Some("ann")));
        assert!(!anybody.allow(Some("bob"), Some("ann")));
        assert!(!anybody.allow(None, None) && !anybody.exist(None));
        assert!(anybody.command(None));
        let carol = Approvers(vec!["carol".to_owned()]);
        assert!(carol.allow(Some("carol"), Some("ann")) && carol.exist(None));
        assert!(!carol.allow(Some("ann"), Some("ann")));
        assert!(!carol.allow(None, Some("ann")));
        assert!(!carol.command(Some("ann")) && carol.command(Some("carol")));
    }
}
