//! Where a session works, told to the model with what the user says.

use std::sync::Arc;

use windlass_core::message::{FragmentSource, Message, Part, Role};

use super::SessionActor;

impl SessionActor {
    /// A message of the user's as it is taken: it also tells where the session works, unless the conversation does.
    pub(super) fn surrounded(&self, message: &Arc<Message>) -> Arc<Message> {
        let Some(part) = self.untold(self.history.iter().chain([message])) else {
            return Arc::clone(message);
        };
        let mut message = Message::clone(message);
        message.parts.insert(0, part);
        Arc::new(message)
    }

    /// A message that tells where the session works, unless these do.
    pub(super) fn reminder(&self, history: &[Arc<Message>]) -> Option<Arc<Message>> {
        let parts = vec![self.untold(history.iter())?];
        let now = self.inner.clock.now();
        Some(Arc::new(Message::new(&self.info.id, Role::User, parts, now)))
    }

    /// Describes the environment, when that is not the last description in these messages.
    fn untold<'a>(&self, messages: impl DoubleEndedIterator<Item = &'a Arc<Message>>) -> Option<Part> {
        let now = self.env.environment()?;
        let told = messages
            .rev()
            .find_map(|message| message.fragment(FragmentSource::Environment));
        (told != Some(now.as_str())).then(|| Part::context(FragmentSource::Environment, now))
    }
}
