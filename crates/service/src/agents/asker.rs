//! Permission requests and questions of sub-agents, shown in the session at the top of their tree.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use windlass_api::{Answer, CallId, ChildQuestion, Event, SessionId, Waiting};
use windlass_core::log::{AgentRow, Durability};
use windlass_core::permission::{Asker, Proposal, Question};

use super::elsewhere::{AskedThere, cluster};
use crate::{Inner, LiveSession, Service};

/// Asks the person who follows the session at the top of the tree, or the one who follows the sub-agent itself: the
/// first answer counts.
pub(crate) struct ChildAsker {
    inner: Weak<Inner>,
    root: SessionId,
    child: SessionId,
    /// Number and name of the sub-agent.
    title: String,
    number: u32,
    own: Arc<dyn Asker>,
}

impl ChildAsker {
    pub(crate) fn new(inner: &Arc<Inner>, row: &AgentRow, own: Arc<dyn Asker>) -> Self {
        Self {
            inner: Arc::downgrade(inner),
            root: row.family.root.clone(),
            child: row.session.clone(),
            title: row.title(),
            number: row.family.number,
            own,
        }
    }

    /// Returns the session at the top of the tree. A server of a cluster opens none that may be another one's.
    async fn top(&self) -> Option<LiveSession> {
        let inner = self.inner.upgrade()?;
        let service = Service::of(&inner);
        match cluster(&inner) {
            Some(_) => service.known(&self.root),
            None => service.open(&self.root).await.ok(),
        }
    }

    /// Asks in the session at the top of the tree where it is: on another server. The reply comes to the sub-agent itself.
    async fn ask_there(&self, call: &CallId, event: Event) {
        let asked = match self.inner.upgrade() {
            None => None,
            Some(inner) => {
                let question = ChildQuestion {
                    child: self.child.clone(),
                    call: call.clone(),
                    shown: self.call(call),
                    event,
                };
                AskedThere::ask(&inner, &self.root, &question).await
            }
        };
        std::future::pending::<()>().await;
        drop(asked);
    }

    /// Returns the request as the session at the top shows it.
    fn request(&self, proposal: &Proposal) -> (Proposal, Event) {
        let mut proposal = proposal.clone();
        proposal.call_id = self.call(&proposal.call_id);
        let mut request = Event::permission_request(&proposal, None);
        if let Event::Waiting(Waiting::PermissionRequest { agent, .. }) = &mut request {
            *agent = Some(self.title.clone());
        }
        (proposal, request)
    }

    /// Returns the id of a call within the whole tree.
    fn call(&self, call: &CallId) -> CallId {
        CallId::from(format!("agent-{}:{call}", self.number))
    }

    async fn ask_top(&self, proposal: &Proposal) -> Answer {
        let (own, (proposal, request)) = (&proposal.call_id, self.request(proposal));
        let Some(top) = self.top().await else {
            self.ask_there(own, request).await;
            return std::future::pending().await;
        };
        let _ = top.sink.store(vec![request], Durability::Process).await;
        let answered = Answered {
            top: top.clone(),
            call: proposal.call_id.clone(),
            allowed: false,
        };
        let answer = top.handle.replies.ask(&proposal).await;
        answered.with(&answer);
        answer
    }

    async fn answer_top(&self, call: &CallId, question: &Question) -> Option<String> {
        let (own, call) = (call, self.call(call));
        let asked = Event::Waiting(Waiting::Question {
            call_id: call.clone(),
            text: format!("Agent {} asks: {}", self.title, question.text),
            options: question.options.clone(),
        });
        let Some(top) = self.top().await else {
            self.ask_there(own, asked).await;
            return std::future::pending().await;
        };
        let _ = top.sink.store(vec![asked], Durability::Process).await;
        top.handle.replies.answer(&call, question).await
    }
}

/// Reports the end of a request, also if it was answered elsewhere or its turn was stopped.
struct Answered {
    top: LiveSession,
    call: CallId,
    allowed: bool,
}

impl Answered {
    fn with(mut self, answer: &Answer) {
        self.allowed = !matches!(answer, Answer::No | Answer::NoBecause(_));
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.top.sink.mention(Event::Waiting(Waiting::PermissionAnswer {
            call_id: self.call.clone(),
            allowed: self.allowed,
        }));
    }
}

#[async_trait]
impl Asker for ChildAsker {
    async fn ask(&self, proposal: &Proposal) -> Answer {
        tokio::select! {
            answer = self.own.ask(proposal) => answer,
            answer = self.ask_top(proposal) => answer,
        }
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        tokio::select! {
            answer = self.own.answer(call, question) => answer,
            answer = self.answer_top(call, question) => answer,
        }
    }
}
