//! Turns: from a call of the client to the answer, with questions in between.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{Backend, Event, EventStream, SessionId, UserReply};
use windlass_jsonrpc::RpcError;

use crate::ask::{NOBODY, Question, TOO_LATE};
use crate::follow::{Follower, Progress, Step};
use crate::protocol::Request;
use crate::signed::{Carried, Signer};

/// Time that a question waits for an answer. Then the answer is no.
const ASK_LIMIT: Duration = Duration::from_secs(600);
/// Time that a canceled turn has to end.
const CANCELING: Duration = Duration::from_secs(10);
/// Delay before an answer is given again that came before the turn waited for it, and the number of times.
const AGAIN: Duration = Duration::from_millis(5);
const TIMES: u32 = 2_000;

/// Runs and follows turns for all connections.
pub(crate) struct Turns {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) signer: Signer,
    /// Tasks that look after turns that no call follows.
    pub(crate) background: TaskTracker,
    /// Canceled when the server ends.
    pub(crate) stop: CancellationToken,
}

/// A turn that a call of the client follows.
pub(crate) struct Followed<'a> {
    pub(crate) session: SessionId,
    /// Tool of the client's call.
    pub(crate) tool: &'a str,
    pub(crate) events: EventStream,
    /// Number of the last event that happened before.
    pub(crate) history: u64,
    /// True if the turn belongs to the call: withdrawing the call cancels the turn.
    pub(crate) is_own: bool,
    pub(crate) limit: Duration,
    /// Calls that were denied because nobody could be asked.
    pub(crate) denied: Vec<String>,
}

impl Turns {
    /// Follows a turn until it ends, asks a stateless client, or the time is over.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        request: &Request,
        params: &Value,
        turn: Followed<'_>,
    ) -> Result<Value, RpcError> {
        let (session, tool, limit, is_own) = (turn.session, turn.tool, turn.limit, turn.is_own);
        let mut denied = turn.denied;
        let progress = Progress::new(&request.outbox, params);
        let mut follower = Follower::new(turn.events, turn.history, progress, request.cancel.clone());
        let driving = self.drive(request, &session, &mut follower, &mut denied);
        let driven = tokio::time::timeout(limit, driving).await;
        let after = follower.seen;
        match driven {
            Err(_) => {
                self.linger(&session, after, request.can_ask);
                self.result(&session, State::Running, denied).await
            }
            Ok(Step::Ended(event)) => self.result(&session, State::Ended(event), denied).await,
            Ok(Step::Asks(question)) => {
                self.linger(&session, question.seq.saturating_sub(1), request.can_ask);
                self.input_required(&session, tool, &question, denied)
            }
            Ok(Step::Withdrawn) => {
                if is_own {
                    self.backend.cancel(&session).await;
                    let ended = async {
                        while !matches!(
                            follower.next(None).await,
                            Step::Ended(_) | Step::Over | Step::Withdrawn
                        ) {}
                    };
                    let _ = tokio::time::timeout(CANCELING, ended).await;
                }
                Err(RpcError::new(-32800, "the request was cancelled"))
            }
            Ok(Step::Answered | Step::Over) => self.result(&session, State::Idle, denied).await,
        }
    }

    /// Answers questions with the client's help until the turn ends, or until a stateless client must be asked.
    async fn drive(
        &self,
        request: &Request,
        session: &SessionId,
        follower: &mut Follower,
        denied: &mut Vec<String>,
    ) -> Step {
        loop {
            let question = match follower.next(None).await {
                Step::Asks(question) => question,
                Step::Answered => continue,
                step => return step,
            };
            if !request.can_ask {
                denied.push(question.line());
                self.reply(session, &question, question.refusal(NOBODY)).await;
                continue;
            }
            if request.is_modern {
                return Step::Asks(question);
            }
            let asking = request.outbox.request("elicitation/create", question.params());
            let step = tokio::select! {
                biased;
                step = follower.next(Some(&question.call)) => step,
                answer = tokio::time::timeout(ASK_LIMIT, asking) => {
                    let reply = match answer {
                        Ok(Ok(answer)) => question.reply(&answer),
                        Ok(Err(error)) => {
                            denied.push(question.line());
                            question.refusal(&format!("{NOBODY} ({})", error.message))
                        }
                        Err(_) => question.refusal(TOO_LATE),
                    };
                    self.reply(session, &question, reply).await;
                    continue;
                }
            };
            if !matches!(step, Step::Answered) {
                return step;
            }
        }
    }

    /// Gives an answer. A client that answers at once may be faster than the turn, which waits only after it has asked.
    pub(crate) async fn reply(&self, session: &SessionId, question: &Question, reply: UserReply) {
        self.reply_to(session, &question.call.clone(), reply).await;
    }

    async fn reply_to(&self, session: &SessionId, call: &windlass_api::CallId, reply: UserReply) {
        let mut again = tokio::time::interval(AGAIN);
        for _ in 0..TIMES {
            if self.backend.reply(session, call, reply.clone()).await {
                return;
            }
            if self.backend.why(session).await.is_empty() {
                return;
            }
            again.tick().await;
        }
    }

    /// Ends a round of a stateless call with its question.
    fn input_required(
        &self,
        session: &SessionId,
        tool: &str,
        question: &Question,
        denied: Vec<String>,
    ) -> Result<Value, RpcError> {
        let carried = Carried {
            session: session.to_string(),
            tool: tool.to_owned(),
            call: question.call.to_string(),
            seq: question.seq,
            denied,
        };
        let state = self.signer.sign(&carried);
        let state = state.ok_or_else(|| RpcError::internal("the system has no random numbers"))?;
        let asked = json!({ "method": "elicitation/create", "params": question.params() });
        Ok(json!({
            "resultType": "input_required",
            "inputRequests": { carried.call.as_str(): asked },
            "requestState": state,
        }))
    }

    /// Looks after a turn that no call follows: a question that nobody answers is denied.
    pub(crate) fn linger(self: &Arc<Self>, session: &SessionId, after: u64, can_ask: bool) {
        let (turns, session) = (Arc::clone(self), session.clone());
        let (limit, why) = if can_ask {
            (ASK_LIMIT, TOO_LATE)
        } else {
            (Duration::ZERO, NOBODY)
        };
        self.background.spawn(async move {
            let Ok(events) = turns.backend.subscribe(&session, after).await else {
                return;
            };
            let history = match turns.backend.overview(&session).await {
                Ok(overview) if overview.is_busy => overview.info.last_seq,
                _ => return,
            };
            let mut follower = Follower::new(events, history, Progress::none(), turns.stop.clone());
            loop {
                match follower.next(None).await {
                    Step::Asks(question) => {
                        let answered = follower.next(Some(&question.call));
                        match tokio::time::timeout(limit, answered).await {
                            Err(_) => turns.reply(&session, &question, question.refusal(why)).await,
                            Ok(Step::Answered) => {}
                            Ok(_) => return,
                        }
                    }
                    Step::Answered => {}
                    Step::Ended(_) | Step::Over | Step::Withdrawn => return,
                }
            }
        });
    }

    /// Returns the result of a call: the state of the session, with its answer and cost.
    pub(crate) async fn result(
        &self,
        session: &SessionId,
        state: State,
        denied: Vec<String>,
    ) -> Result<Value, RpcError> {
        let overview = self.backend.overview(session).await;
        let overview = overview.map_err(|error| RpcError::internal(error.to_string()))?;
        let totals = overview.info.totals;
        let (status, text, is_error) = state.describe(session);
        let mut content = json!({
            "session_id": session,
            "status": status,
            "answer": text,
            "cost_usd": totals.cost_usd,
            "input_tokens": totals.prompt_tokens,
            "output_tokens": totals.completion_tokens,
            "folder": overview.info.place,
            "model": overview.model,
        });
        if let (false, Some(content)) = (denied.is_empty(), content.as_object_mut()) {
            content.insert("denied".to_owned(), json!(denied));
        }
        let mut lines = vec![text];
        let asked = denied
            .iter()
            .map(|call| format!("Denied, because nobody could be asked: {call}"));
        lines.extend(asked);
        lines.push(format!(
            "[session {session} · {status} · ${:.4}]",
            totals.cost_usd
        ));
        Ok(json!({
            "content": [{ "type": "text", "text": lines.join("\n\n") }],
            "structuredContent": content,
            "isError": is_error,
        }))
    }
}

/// State of a session at the end of a call.
pub(crate) enum State {
    Ended(Event),
    Running,
    Steered,
    Canceled,
    Idle,
}

impl State {
    /// Returns the status, the text, and whether the call failed.
    fn describe(self, session: &SessionId) -> (&'static str, String, bool) {
        match self {
            Self::Ended(Event::Final { content, .. }) => ("answered", content, false),
            Self::Ended(Event::Failed { message, hint, .. }) => {
                let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                ("failed", format!("{message}{hint}"), true)
            }
            Self::Ended(Event::Canceled { message }) => ("canceled", message, true),
            Self::Ended(_) | Self::Idle => ("idle", "No turn runs.".to_owned(), false),
            Self::Running => {
                let text =
                    format!("The turn is still running; call wait_for_session with session_id {session}.");
                ("running", text, false)
            }
            Self::Steered => ("running", "The running turn will read it next.".to_owned(), false),
            Self::Canceled => ("canceled", "The turn was stopped.".to_owned(), false),
        }
    }
}
