//! Description of the environment, sent to the model with the user's message.

use std::sync::Arc;

use windlass_core::message::{FragmentSource, Message, Part, Role};

use super::SessionActor;

impl SessionActor {
    /// Returns the user's message with a description of the environment, unless the conversation contains it
    /// already.
    pub(super) fn surrounded(&self, message: &Arc<Message>) -> Arc<Message> {
        let Some(part) = self.untold(self.history.iter().chain([message])) else {
            return Arc::clone(message);
        };
        let mut message = Message::clone(message);
        message.parts.insert(0, part);
        Arc::new(message)
    }

    /// Returns a message that describes the environment, unless these messages contain it.
    pub(super) fn reminder(&self, history: &[Arc<Message>]) -> Option<Arc<Message>> {
        let parts = vec![self.untold(history.iter())?];
        let now = self.inner.clock.now();
        Some(Arc::new(Message::new(&self.info.id, Role::User, parts, now)))
    }

    /// Returns the description of the environment, unless it is the last description in these messages.
    fn untold<'a>(&self, messages: impl DoubleEndedIterator<Item = &'a Arc<Message>>) -> Option<Part> {
        let now = self.env.environment()?;
        let told = messages
            .rev()
            .find_map(|message| message.fragment(FragmentSource::Environment));
        (told != Some(now.as_str())).then(|| Part::context(FragmentSource::Environment, now))
    }
}
