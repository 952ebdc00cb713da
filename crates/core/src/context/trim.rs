//! SES-13: an optional hard limit on the length of a conversation.

use std::sync::Arc;

use crate::message::{Message, Part, Role};

/// Returns the new start of a history that is longer than `most` messages. It is a message of the user, so
/// that no exchange is cut in two. `None` if the history is short enough or nothing can be removed.
pub fn trim(history: &[Arc<Message>], most: usize) -> Option<usize> {
    let over = history.len().checked_sub(most).filter(|over| *over > 0)?;
    let begins = |place: &usize| history.get(*place).is_some_and(|message| is_said(message));
    // The last exchange stays, whatever its length.
    let place = (over..history.len())
        .find(begins)
        .or_else(|| (1..over).rev().find(begins));
    place.filter(|_| most > 0)
}

fn is_said(message: &Message) -> bool {
    message.role == Role::User
        && message
            .parts
            .iter()
            .any(|part| !matches!(part, Part::ToolResult(_) | Part::Finish(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn history(roles: &str) -> Vec<Arc<Message>> {
        let message = |role: char| {
            let role = match role {
                'u' => Role::User,
                'a' => Role::Assistant,
                _ => Role::Tool,
            };
            Arc::new(Message::new(
                &"s".into(),
                role,
                vec![Part::text("x")],
                Timestamp(1),
            ))
        };
        roles.chars().map(message).collect()
    }

    /// SES-13: the oldest messages go first, in whole exchanges, and the last exchange always stays.
    #[test]
    fn whole_exchanges_go() {
        for (roles, most, begin) in [
            ("ua", 2, None),
            ("uaua", 2, Some(2)),
            ("uaua", 3, Some(2)),
            ("uatataua", 4, Some(6)),
            ("uatatatata", 4, None),
            ("uauatatatata", 4, Some(2)),
            ("uauatatatatau", 4, Some(12)),
            ("uaua", 0, None),
            ("", 3, None),
        ] {
            assert_eq!(trim(&history(roles), most), begin, "{roles} {most}");
        }
    }
}
