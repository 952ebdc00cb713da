//! Hooks through the library's face: an agent with a scripted model, and hooks that answer as a test says.

use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::agent::{Agent, AgentBuilder, CompactionConfig};
use crate::event::FailureKind;
use crate::message::{FragmentSource, Part, Role};
use crate::permission::{Approver, Denial, Mode, Policy, Rules, Subject};
use crate::provider::Provider;
use crate::script::{Scene, ScriptedProvider};
use crate::tool::{Category, Judgement, Tool};

/// Lines in the order in which things happened.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the lines that start with `word`, without it.
    fn about(&self, word: &str) -> Vec<String> {
        let rest = |line: String| line.strip_prefix(word).map(|rest| rest.trim_start().to_owned());
        self.lines().into_iter().filter_map(rest).collect()
    }
}

/// A hook that notes when it is called and answers as it was told.
struct Probe {
    name: &'static str,
    log: Log,
    /// The point at which it never answers.
    hangs_at: &'static str,
    before_turn: TurnAction,
    before_call: fn(&Proposal) -> CallAction,
    on_request: PermissionAction,
    result: Option<&'static str>,
}

impl Probe {
    fn new(name: &'static str, log: &Log) -> Self {
        Self {
            name,
            log: log.clone(),
            hangs_at: "",
            before_turn: TurnAction::default(),
            before_call: |_| CallAction::Proceed,
            on_request: PermissionAction::AskUser,
            result: None,
        }
    }

    async fn at(&self, point: &str) {
        self.log.note(format!("{} {point}", self.name));
        if point == self.hangs_at {
            std::future::pending::<()>().await;
        }
    }
}

impl Hook for Probe {
    fn name(&self) -> &str {
        self.name
    }
    fn time_limit(&self) -> Duration {
        Duration::from_secs(7)
    }
    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }
    fn compaction(&self) -> Option<&dyn CompactionHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for Probe {
    async fn before_turn(&self, _: &[Arc<Message>]) -> TurnAction {
        self.at("before_turn").await;
        self.before_turn.clone()
    }
    async fn before_iteration(&self, _: IterationView<'_>) -> Verdict {
        self.at("before_iteration").await;
        Verdict::proceed()
    }
    async fn after_iteration(&self, _: IterationView<'_>) -> Verdict {
        self.at("after_iteration").await;
        Verdict::proceed()
    }
    async fn before_answer(&self, _: &str) -> AnswerAction {
        self.at("before_answer").await;
        AnswerAction::Accept
    }
    async fn turn_ended(&self, _: &TurnEnd<'_>) -> Vec<Event> {
        self.at("turn_ended").await;
        vec![Event::Warning {
            message: format!("fact of {}", self.name),
        }]
    }
}

#[async_trait]
impl CallHook for Probe {
    async fn before_call(&self, proposal: &Proposal) -> CallAction {
        self.at("before_call").await;
        (self.before_call)(proposal)
    }
    async fn on_permission_request(&self, _: &Proposal) -> PermissionAction {
        self.at("on_permission_request").await;
        self.on_request.clone()
    }
    async fn call_starting(&self, _: &AdmittedCall, _: &ToolContext) {
        self.at("call_starting").await;
    }
    async fn after_call(
        &self,
        _: &AdmittedCall,
        _: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        self.at("after_call").await;
        match (self.result, result) {
            (Some(more), Ok(output)) => Ok(ToolOutput::text(format!("{} {more}", output.content))),
            (_, result) => result,
        }
    }
}

#[async_trait]
impl CompactionHook for Probe {
    async fn before_compact(&self, _: &[Arc<Message>]) -> Option<String> {
        self.at("before_compact").await;
        Some(format!("instruction of {}", self.name))
    }
    async fn after_compact(&self, _: &[Arc<Message>]) -> Vec<Fragment> {
        self.at("after_compact").await;
        vec![Fragment::new(
            FragmentSource::Hook,
            format!("kept by {}", self.name),
        )]
    }
}

/// Moves to a place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MoveInput {
    to: String,
}

/// A tool that notes its runs: a write, or an administrative call if the place is far away.
struct Move(Log);

impl Tool for Move {
    type Input = MoveInput;
    const NAME: &'static str = "move";

    fn category(&self, input: &MoveInput) -> Category {
        if input.to.starts_with("far") {
            Category::Admin
        } else {
            Category::Write
        }
    }
    fn judge(&self, input: &MoveInput) -> Judgement {
        Judgement {
            subjects: vec![Subject::Path(input.to.clone())],
            ..Judgement::of(self.category(input))
        }
    }
    async fn run(&self, input: MoveInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.note(format!("moved {}", input.to));
        Ok(ToolOutput::text(format!("at {}", input.to)))
    }
}

/// A person who notes the requests and always gives the same answer.
struct Clerk(Log, bool);

#[async_trait]
impl Approver for Clerk {
    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        let reasons = proposal.reasons.join("; ");
        self.0
            .note(format!("asked {} {reasons}", proposal.arguments["to"]));
        match self.1 {
            true => Ok(()),
            false => Err(Denial {
                feedback: Some("the person said no".to_owned()),
                ..Denial::default()
            }),
        }
    }
}

/// A model that moves to `place`, then answers.
fn moves(place: &str) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new([
        Scene::call("c1", "move", json!({"to": place})),
        Scene::text("done"),
    ]))
}

fn agent(provider: &Arc<ScriptedProvider>, log: &Log) -> AgentBuilder {
    let provider: Arc<dyn Provider> = Arc::clone(provider) as Arc<dyn Provider>;
    Agent::builder(provider)
        .tool(Move(log.clone()))
        .approver(Clerk(log.clone(), true))
}

/// Runs a turn in which the model moves to `place`. Returns the result that the model reads.
async fn result_of(
    place: &str,
    log: &Log,
    hooks: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> (String, bool) {
    let agent = hooks(agent(&moves(place), log)).build();
    let _ = agent.run("go").await;
    let history = agent.history().await;
    let result = history.iter().find_map(|message| message.results().next());
    let result = result.expect("a result");
    (result.content.clone(), result.is_error)
}

fn warnings(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    texts.collect()
}

fn deny(rule: &str) -> Policy {
    Policy {
        rules: Rules {
            deny: vec![rule.parse().expect("a rule")],
            ..Rules::default()
        },
        ..Policy::default()
    }
}

/// LOOP-18: hooks run in the order of the list before an action, and in reverse after it.
#[tokio::test]
async fn hooks_nest() {
    let log = Log::default();
    let (a, b) = (Probe::new("a", &log), Probe::new("b", &log));
    let agent = agent(&moves("far"), &log).hook(a).hook(b).build();
    assert_eq!(agent.run("go").await, Ok("done".to_owned()));
    assert_eq!(
        log.lines(),
        [
            "a before_turn",
            "b before_turn",
            "a before_iteration",
            "b before_iteration",
            "a before_call",
            "b before_call",
            "a on_permission_request",
            "b on_permission_request",
            "asked \"far\" ",
            "a call_starting",
            "b call_starting",
            "moved far",
            "b after_call",
            "a after_call",
            "b after_iteration",
            "a after_iteration",
            "a before_iteration",
            "b before_iteration",
            "a before_answer",
            "b before_answer",
            "b after_iteration",
            "a after_iteration",
            "b turn_ended",
            "a turn_ended",
        ]
    );
}

/// LOOP-18, MSG-6: fragments of `before_turn` are in the model's request, and are not the user's words.
#[tokio::test]
async fn fragments_before_a_turn() {
    let (log, provider) = (Log::default(), moves("near"));
    let fragment = |text: &str| vec![Fragment::new(FragmentSource::Hook, text).labeled("a")];
    let a = Probe {
        before_turn: TurnAction::Start(fragment("the build is red")),
        ..Probe::new("a", &log)
    };
    let b = Probe {
        before_turn: TurnAction::Start(fragment("it is late")),
        ..Probe::new("b", &log)
    };
    let agent = agent(&provider, &log).hook(a).hook(b).build();
    assert_eq!(agent.run("go").await, Ok("done".to_owned()));
    let seen = provider.seen();
    let expected = "user: go\nuser: <hook name=\"a\">\nthe build is red\n</hook>\n\
                    user: <hook name=\"a\">\nit is late\n</hook>";
    assert!(seen[0].contains(expected), "{}", seen[0]);
    let history = agent.history().await;
    let words: String = history.iter().map(|message| message.user_text()).collect();
    assert_eq!(words, "go");
}

/// LOOP-18: a hook stops a turn with a reason before the model is called; later hooks are not called.
#[tokio::test]
async fn a_hook_stops_a_turn() {
    let (log, provider) = (Log::default(), moves("near"));
    let stop = Probe {
        before_turn: TurnAction::Stop("the budget is spent".to_owned()),
        ..Probe::new("a", &log)
    };
    let agent = agent(&provider, &log)
        .hook(stop)
        .hook(Probe::new("b", &log))
        .build();
    let error = agent.run("go").await.expect_err("it is stopped");
    assert_eq!(error.to_string(), "a: the budget is spent");
    assert!(provider.seen().is_empty());
    assert_eq!(log.lines(), ["a before_turn", "b turn_ended", "a turn_ended"]);
}

fn rewrites(to: &'static str, log: &Log) -> Probe {
    let before_call: fn(&Proposal) -> CallAction = match to {
        "near" => |call| rewrite(call, json!({"to": "near"})),
        "far" => |call| rewrite(call, json!({"to": "far"})),
        "secret" => |call| rewrite(call, json!({"to": "secret"})),
        _ => |call| rewrite(call, json!({"wrong": 1})),
    };
    Probe {
        before_call,
        ..Probe::new("a", log)
    }
}

fn rewrite(call: &Proposal, arguments: serde_json::Value) -> CallAction {
    if call.arguments == arguments {
        CallAction::Proceed
    } else {
        CallAction::Rewrite(arguments.to_string())
    }
}

/// LOOP-18: rewritten arguments are validated and judged as if the model had sent them, by all hooks again.
#[tokio::test]
async fn rewritten_arguments_are_judged_again() {
    let log = Log::default();
    let fine = result_of("secret", &log, |agent| {
        let other = Probe::new("b", &log);
        agent
            .policy(deny("move(secret)"))
            .hook(rewrites("near", &log))
            .hook(other)
    });
    assert_eq!(fine.await, ("at near".to_owned(), false));
    assert_eq!(log.about("b before_call").len(), 2, "{:?}", log.lines());

    let log = Log::default();
    let (text, is_error) = result_of("near", &log, |agent| agent.hook(rewrites("bad", &log))).await;
    assert!(is_error && text.contains("unknown field `wrong`"), "{text}");

    let denied = result_of("near", &log, |agent| {
        agent.policy(deny("move(secret)")).hook(rewrites("secret", &log))
    });
    let (text, is_error) = denied.await;
    assert!(
        is_error && text.contains("the rule `move(secret)` forbids"),
        "{text}"
    );
    assert!(log.about("moved").is_empty() && log.about("asked").is_empty());

    let asked = result_of("near", &log, |agent| agent.hook(rewrites("far", &log)));
    assert_eq!(asked.await, ("at far".to_owned(), false));
    assert_eq!(log.about("asked"), ["\"far\" "]);
}

/// LOOP-18: a call that hooks keep rewriting is refused after three rewrites, and never runs.
#[tokio::test]
async fn endless_rewriting_is_refused() {
    let log = Log::default();
    let (text, is_error) = result_of("x", &log, |agent| {
        agent.hook(Probe {
            before_call: |call| {
                let to = call.arguments["to"].as_str().unwrap_or_default();
                CallAction::Rewrite(json!({"to": format!("{to}x")}).to_string())
            },
            ..Probe::new("a", &log)
        })
    })
    .await;
    assert_eq!(
        (text.as_str(), is_error),
        ("Not run: hooks kept rewriting the arguments of this call.", true)
    );
    assert_eq!(log.about("a before_call").len(), 4);
    assert!(log.about("moved").is_empty());
}

/// LOOP-18: a hook that rewrites every call to the same arguments is asked about its own rewrite and changes nothing.
#[tokio::test]
async fn a_hook_may_rewrite_every_call() {
    let log = Log::default();
    let result = result_of("x", &log, |agent| {
        agent.hook(Probe {
            before_call: |_| CallAction::Rewrite(json!({"to": "near"}).to_string()),
            ..Probe::new("a", &log)
        })
    });
    assert_eq!(result.await, ("at near".to_owned(), false));
}

/// LOOP-18: deny beats ask, ask beats proceed, in any order of the hooks. A hook's question reaches a person although
/// the rules allow the call, with all reasons.
#[tokio::test]
async fn deny_beats_ask_beats_proceed() {
    type Answer = fn(&Proposal) -> CallAction;
    let proceed: Answer = |_| CallAction::Proceed;
    let ask: Answer = |_| CallAction::Ask("it is Friday".to_owned());
    let ask_too: Answer = |_| CallAction::Ask("it is late".to_owned());
    let deny: Answer = |_| CallAction::Deny("not on Fridays".to_owned());
    let denied = ("not on Fridays", true);
    type Case = ([Answer; 2], (&'static str, bool), &'static [&'static str]);
    let cases: [Case; 7] = [
        ([proceed, proceed], ("at near", false), &[]),
        ([proceed, ask], ("at near", false), &["\"near\" it is Friday"]),
        ([ask, proceed], ("at near", false), &["\"near\" it is Friday"]),
        (
            [ask, ask_too],
            ("at near", false),
            &["\"near\" it is Friday; it is late"],
        ),
        ([deny, ask], denied, &[]),
        ([ask, deny], denied, &[]),
        ([deny, proceed], denied, &[]),
    ];
    for (number, ([first, second], expected, asked)) in cases.into_iter().enumerate() {
        let log = Log::default();
        let hook = |name, before_call| Probe {
            before_call,
            ..Probe::new(name, &log)
        };
        let result = result_of("near", &log, |agent| {
            agent.hook(hook("a", first)).hook(hook("b", second))
        });
        let (text, is_error) = result.await;
        assert_eq!((text.as_str(), is_error), expected, "case {number}");
        assert_eq!(log.about("asked"), asked, "case {number}");
    }
    let log = Log::default();
    let refused = result_of("near", &log, |agent| {
        let hook = Probe {
            before_call: ask,
            ..Probe::new("a", &log)
        };
        agent.hook(hook).approver(Clerk(log.clone(), false))
    });
    assert_eq!(refused.await, ("the person said no".to_owned(), true));
    assert!(log.about("moved").is_empty());
}

/// LOOP-18: a hook may answer a permission request in the person's place; a denial of another hook wins. Its yes lifts
/// no deny rule, no plan mode and no unattended mode: there it is not even asked.
#[tokio::test]
async fn a_hook_answers_for_the_person() {
    let allow = |log: &Log| Probe {
        on_request: PermissionAction::Allow,
        ..Probe::new("a", log)
    };
    let log = Log::default();
    let allowed = result_of("far", &log, |agent| agent.hook(allow(&log)));
    assert_eq!(allowed.await, ("at far".to_owned(), false));
    assert!(log.about("asked").is_empty());

    let log = Log::default();
    let denied = result_of("far", &log, |agent| {
        let deny = Probe {
            on_request: PermissionAction::Deny("too far".to_owned()),
            ..Probe::new("b", &log)
        };
        agent.hook(allow(&log)).hook(deny)
    });
    assert_eq!(denied.await, ("too far".to_owned(), true));

    let mode = |mode| Policy {
        mode,
        ..Policy::default()
    };
    for (policy, text) in [
        (deny("move(far)"), "the rule `move(far)` forbids"),
        (mode(Mode::Plan), "plan mode"),
        (mode(Mode::Unattended), "unattended"),
    ] {
        let log = Log::default();
        let result = result_of("far", &log, |agent| agent.policy(policy).hook(allow(&log)));
        let (content, is_error) = result.await;
        assert!(is_error && content.contains(text), "{content}");
        for word in ["moved", "asked", "a on_permission_request"] {
            assert!(log.about(word).is_empty(), "{word}: {:?}", log.lines());
        }
    }
}

/// LOOP-18: a hook that does not answer before a call means that a person is asked, with the reason; one that does not
/// answer a permission request leaves it to the person, whatever another hook said.
#[tokio::test(start_paused = true)]
async fn a_silent_hook_is_no_yes() {
    let silent = |point, log: &Log| Probe {
        hangs_at: point,
        ..Probe::new("b", log)
    };
    let log = Log::default();
    let result = result_of("near", &log, |agent| agent.hook(silent("before_call", &log)));
    assert_eq!(result.await, ("at near".to_owned(), false));
    assert_eq!(
        log.about("asked"),
        ["\"near\" the hook `b` did not answer within 7 s"]
    );
    let log = Log::default();
    let result = result_of("far", &log, |agent| {
        let allow = Probe {
            on_request: PermissionAction::Allow,
            ..Probe::new("a", &log)
        };
        agent
            .hook(allow)
            .hook(silent("on_permission_request", &log))
            .approver(Clerk(log.clone(), false))
    });
    assert_eq!(result.await, ("the person said no".to_owned(), true));
    assert_eq!(log.about("asked").len(), 1);
    // Nobody to ask: the call does not run.
    let log = Log::default();
    let agent = agent(&moves("near"), &log)
        .approver(crate::permission::NobodyToAsk)
        .hook(silent("before_call", &log))
        .build();
    let error = agent.run("go").await.expect_err("nobody is asked");
    assert!(
        error.to_string().contains("the hook `b` did not answer"),
        "{error}"
    );
    assert!(log.about("moved").is_empty());
}

/// LOOP-18: a hook that does not answer anywhere else is reported, and neither stops the turn nor the hooks after it.
#[tokio::test(start_paused = true)]
async fn a_silent_hook_is_reported() {
    for point in [
        "before_turn",
        "before_iteration",
        "after_iteration",
        "before_answer",
        "turn_ended",
        "before_compact",
        "after_compact",
    ] {
        let log = Log::default();
        let silent = Probe {
            hangs_at: point,
            ..Probe::new("silent", &log)
        };
        let (_, agent) = compacting(&log, [Probe::new("a", &log), silent, Probe::new("b", &log)]);
        let events: Vec<Event> = agent.run_stream("go").collect().await;
        assert!(matches!(events.last(), Some(Event::Final { .. })), "{point}");
        let told = "the hook `silent` did not answer within 7 s";
        assert!(
            warnings(&events).contains(&told),
            "{point}: {:?}",
            warnings(&events)
        );
        for hook in ["a", "b"] {
            assert!(
                !log.about(&format!("{hook} {point}")).is_empty(),
                "{point} {hook}"
            );
        }
    }
}

/// LOOP-18: a hook that hangs around a running call is stopped with the call, at the call's time limit.
#[tokio::test(start_paused = true)]
async fn a_hook_around_a_call_has_the_calls_time() {
    for (point, ran) in [("call_starting", 0), ("after_call", 1)] {
        let log = Log::default();
        let (text, is_error) = result_of("near", &log, |agent| {
            agent.hook(Probe {
                hangs_at: point,
                ..Probe::new("a", &log)
            })
        })
        .await;
        assert!(is_error, "{point}: {text}");
        assert_eq!(log.about("moved").len(), ran, "{point}");
    }
}

/// LOOP-18: `after_call` replaces a result, the last hook first.
#[tokio::test]
async fn a_result_is_replaced() {
    let log = Log::default();
    let adds = |name, text| Probe {
        result: Some(text),
        ..Probe::new(name, &log)
    };
    let result = result_of("near", &log, |agent| {
        agent.hook(adds("a", "outer")).hook(adds("b", "inner"))
    });
    assert_eq!(result.await, ("at near inner outer".to_owned(), false));
}

/// An agent whose history must be summarized before the model is called.
fn compacting<const N: usize>(log: &Log, hooks: [Probe; N]) -> (Arc<ScriptedProvider>, Agent) {
    let message = |number: usize| {
        let role = if number.is_multiple_of(2) {
            Role::User
        } else {
            Role::Assistant
        };
        let parts = vec![Part::text(format!("{number} {}", "word ".repeat(1_000)))];
        Arc::new(Message::new(&"s".into(), role, parts, crate::clock::Timestamp(1)))
    };
    let scenes = [Scene::text("the story so far"), Scene::text("done")];
    let provider = Arc::new(ScriptedProvider::new(scenes).with_context_window(12_000));
    let config = CompactionConfig {
        threshold: 0.5,
        keep_recent: 2,
    };
    let builder = agent(&provider, log)
        .history((0..10).map(message).collect())
        .compaction(Some(config));
    let agent = hooks.into_iter().fold(builder, AgentBuilder::hook).build();
    (provider, agent)
}

/// LOOP-18: instructions of `before_compact` reach the summarizer, and fragments of `after_compact` are part of the
/// message with the summary, in the next request and in the conversation.
#[tokio::test]
async fn hooks_around_a_compaction() {
    let log = Log::default();
    let (provider, agent) = compacting(&log, [Probe::new("a", &log), Probe::new("b", &log)]);
    assert_eq!(agent.run("go").await, Ok("done".to_owned()));
    let seen = provider.seen();
    let (first, second) = (seen[0].find("instruction of a"), seen[0].find("instruction of b"));
    assert!(first.is_some() && first < second, "{}", seen[0]);
    for text in ["the story so far", "kept by a", "kept by b"] {
        assert!(seen[1].contains(text), "{text}: {}", seen[1]);
    }
    let history = agent.history().await;
    let summary = history
        .iter()
        .find(|message| {
            message
                .parts
                .iter()
                .any(|part| matches!(part, Part::Compaction(_)))
        })
        .expect("a summary");
    let kept: Vec<&str> = summary
        .fragments()
        .filter(|fragment| fragment.source == FragmentSource::Hook)
        .map(|fragment| fragment.text.as_str())
        .collect();
    assert_eq!(kept, ["kept by b", "kept by a"]);
}

/// LOOP-18: the facts of `turn_ended` are sent before the terminal event, also when the turn failed.
#[tokio::test]
async fn facts_come_before_the_end() {
    for scenes in [vec![Scene::text("done")], Vec::new()] {
        let log = Log::default();
        let agent = agent(&Arc::new(ScriptedProvider::new(scenes)), &log)
            .hook(Probe::new("a", &log))
            .hook(Probe::new("b", &log))
            .build();
        let events: Vec<Event> = agent.run_stream("go").collect().await;
        let [.., first, second, last] = events.as_slice() else {
            panic!("{events:?}");
        };
        let facts = [first.clone(), second.clone()];
        assert_eq!(warnings(&facts), ["fact of b", "fact of a"]);
        assert!(
            matches!(
                last,
                Event::Final { .. }
                    | Event::Failed {
                        reason: FailureKind::Provider(_),
                        ..
                    }
            ),
            "{last:?}"
        );
    }
}
