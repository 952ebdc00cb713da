//! Sub-agents on other servers than the sessions above them.

use serde_json::{Value, json};
use windlass_sim::{Reply, When};
use windlass_testkit::{HttpServer, PATIENCE, Signal, eventually};

use super::carrier;
use super::cluster::{Fleet, bash, check_record, count, entries, wait_entry, wait_ran};

/// Places of the session above and of its sub-agent, once they are apart.
const ABOVE: &str = "host:above";
const BELOW: &str = "host:below";

/// Returns a model whose session starts an agent in one call and waits for it, and whose agent does the rest.
fn replies(agent: impl IntoIterator<Item = Reply>) -> Vec<Reply> {
    let asked = When::new().user_contains("PARENT");
    let call = json!({
        "task": "CHILD work", "name": "digger", "type": "coder", "isolation": "none",
    });
    let told = asked.clone().last_tool("agent");
    let mut all = vec![
        Reply::call("agent", call).when(asked),
        Reply::text("the agent goes on").when(told),
        Reply::text("the session above has it")
            .when(When::new().user_contains("RESULT 42"))
            .forever(),
    ];
    all.extend(agent);
    all
}

/// Returns a call of the agent that runs until its server is killed.
fn stuck(mark: &str, when: When) -> Reply {
    bash(&format!("echo {mark} >> ran.txt; sleep 60")).when(when)
}

fn asked() -> When {
    When::new().user_contains("CHILD")
}

fn interrupted() -> When {
    When::new().last_result_contains("look before you do it again")
}

fn serve(fleet: &Fleet, number: usize, mode: &str, places: &[&str]) -> HttpServer {
    let mut options = vec!["--mode", mode];
    places
        .iter()
        .for_each(|place| options.extend(["--place", *place]));
    fleet.start(number, &options)
}

/// A session on one server, and its agent on another.
struct Apart {
    above: HttpServer,
    below: HttpServer,
    session: String,
    agent: String,
}

impl Apart {
    /// Starts both on one server, and kills it while the agent runs a call.
    fn new(fleet: &Fleet, mode: &str) -> Self {
        let first = serve(fleet, 0, "auto", &[ABOVE, BELOW]);
        let session = first.session();
        first.say(&session, "PARENT go");
        wait_ran(fleet, "1");
        let agent = agents(&first, &session)[0]["session"]
            .as_str()
            .unwrap()
            .to_owned();
        let above = serve(fleet, 1, mode, &[ABOVE]);
        let below = serve(fleet, 2, mode, &[BELOW]);
        // Both have the place of their server; from here on, it is not the same.
        assert_eq!(
            fleet.sql(&format!("SELECT home FROM windlass.session WHERE id = '{agent}'")),
            ABOVE
        );
        fleet.sql(&format!(
            "UPDATE windlass.session SET home = '{BELOW}' WHERE id = '{agent}'"
        ));
        first.running.signal(Signal::KILL);
        first.running.output();
        let (moved, _) = wait_entry(&above, &session, "moved");
        assert_eq!(moved["to"], server_of(fleet, ABOVE));
        let (moved, _) = wait_entry(&above, &agent, "moved");
        assert_eq!(moved["to"], server_of(fleet, BELOW));
        Self {
            above,
            below,
            session,
            agent,
        }
    }

    /// Checks that the result came exactly once, and that both records are whole.
    fn check(&self, server: &HttpServer, moves: (usize, usize)) {
        let ended = eventually(PATIENCE, || {
            entries(server, &self.session)
                .iter()
                .any(|entry| entry["content"] == "the session above has it")
        });
        let above = entries(server, &self.session);
        assert!(ended, "{above:#?}");
        let below = entries(server, &self.agent);
        check_record(&above);
        check_record(&below);
        assert_eq!((count(&above, "moved"), count(&below, "moved")), moves);
        assert_eq!(
            (count(&above, "agent_delivered"), count(&below, "agent_ended")),
            (1, 1)
        );
        assert_eq!(count(&below, "final"), 1, "{below:#?}");
        let told = above
            .iter()
            .filter(|entry| entry["type"] == "message" && entry["message"].to_string().contains("RESULT 42"));
        assert_eq!(told.count(), 1, "{above:#?}");
        let row = &agents(server, &self.session)[0];
        assert_eq!(
            (&row["state"], &row["delivered"]),
            (&json!("done"), &json!(true)),
            "{row:#}"
        );
    }
}

fn agents(server: &HttpServer, session: &str) -> Vec<Value> {
    let answer = server.get(&format!("/api/sessions/{session}/agents"));
    answer["agents"].as_array().unwrap().clone()
}

/// Returns the id of the live server that has only this place.
fn server_of(fleet: &Fleet, place: &str) -> Value {
    let status = fleet.status();
    let servers = status["servers"].as_array().unwrap();
    let own = servers
        .iter()
        .filter(|server| server["is_alive"] == true && server["info"]["places"] == json!([place]));
    own.map(|server| server["info"]["id"].clone())
        .next_back()
        .unwrap()
}

/// SUB-4, DIST-6: the server of a session and its agent is killed: both go on, on different servers, and the result of the
/// agent wakes the session and is delivered once. The model is told not to start the agent again.
#[test]
fn an_agent_goes_on_at_another_server_than_its_session() {
    let agent = [
        stuck("1", asked()),
        bash("echo 2 >> ran.txt; echo second step").when(interrupted()),
        Reply::text("RESULT 42").when(When::new().last_result_contains("second step")),
    ];
    let fleet = Fleet::with(3, replies(agent), &carrier::settings());
    let apart = Apart::new(&fleet, "auto");
    apart.check(&apart.above, (1, 1));
    assert_eq!(fleet.ran(), ["1", "2"]);
    let record = entries(&apart.above, &apart.session);
    assert_eq!(
        record
            .iter()
            .filter(|entry| entry["content"] == "the agent goes on")
            .count(),
        1
    );
    let told = record
        .iter()
        .any(|entry| entry["type"] == "message" && entry.to_string().contains("Do not start it again"));
    assert!(told, "{record:#?}");
    fleet.sim.assert_valid();
}

/// SUB-4, DIST-6: a session and its agent are on different servers, and either server is killed: whatever was on it goes on
/// at a third one, and the result is delivered once.
#[test]
fn either_server_may_die() {
    let agent = [
        stuck("1", asked()),
        stuck("2", interrupted()),
        bash("echo 3 >> ran.txt; echo third step").when(interrupted()),
        Reply::text("RESULT 42").when(When::new().last_result_contains("third step")),
    ];
    let fleet = Fleet::with(5, replies(agent), &carrier::settings());
    let mut apart = Apart::new(&fleet, "auto");
    wait_ran(&fleet, "2");
    wait_entry(&apart.above, &apart.session, "final");
    let row = &agents(&apart.above, &apart.session)[0];
    assert_eq!(row["server"], server_of(&fleet, BELOW), "{row:#}");
    // The one of the session, which is idle: nothing is left to do, until its agent ends.
    let above = std::mem::replace(&mut apart.above, serve(&fleet, 3, "auto", &[ABOVE]));
    above.running.signal(Signal::KILL);
    above.running.output();
    // The one of the agent.
    let below = std::mem::replace(&mut apart.below, serve(&fleet, 4, "auto", &[BELOW]));
    below.running.signal(Signal::KILL);
    below.running.output();
    wait_ran(&fleet, "3");
    apart.check(&apart.above, (1, 2));
    assert_eq!(fleet.ran(), ["1", "2", "3"]);
    fleet.sim.assert_valid();
}

/// SUB-3, SUB-8, DIST-4: an agent on another server is asked for, steered and stopped from the session above: its permission
/// requests appear there, the answer reaches it, and so do messages and a stop.
#[test]
fn an_agent_on_another_server_asks_hears_and_stops() {
    let write = |name: &str| Reply::call("write_file", json!({ "path": name, "content": "new\n" }));
    let agent = [
        stuck("1", asked()),
        write("a.txt").when(interrupted()),
        bash("echo 2 >> ran.txt; sleep 60").when(When::new().last_tool("write_file")),
    ];
    let fleet = Fleet::with(3, replies(agent), &carrier::settings());
    let apart = Apart::new(&fleet, "ask");
    let (above, session) = (&apart.above, &apart.session);
    let question = above.question(session);
    assert!(
        question["call"].as_str().unwrap().starts_with("agent-1:"),
        "{question:#}"
    );
    assert_eq!(agents(above, session)[0]["state"], "waiting");
    let answer = |question: &Value| {
        let call = question["call"].as_str().unwrap();
        above.post(
            &format!("/api/sessions/{session}/replies/{call}"),
            &json!({ "answer": "once" }),
        );
    };
    answer(&question);
    let written = eventually(PATIENCE, || fleet.project().has("a.txt"));
    assert!(written, "{:#?}", entries(above, &apart.agent));
    // The next call asks again.
    let first = question["call"].clone();
    let mut next = Value::Null;
    assert!(eventually(PATIENCE, || {
        next = above.question(session);
        next["call"] != first
    }));
    answer(&next);
    wait_ran(&fleet, "2");
    let command = |line: &str| {
        above.post(
            &format!("/api/sessions/{session}/commands"),
            &json!({ "line": line }),
        )
    };
    let said = command("/agents send 1 MORE please");
    assert!(
        said["text"].as_str().unwrap().contains("Sent to agent 1 digger"),
        "{said:#}"
    );
    let queued = eventually(PATIENCE, || {
        entries(above, &apart.agent)
            .iter()
            .any(|entry| entry.to_string().contains("MORE please"))
    });
    assert!(queued, "{:#?}", entries(above, &apart.agent));
    let said = command("/agents stop 1");
    assert!(
        said["text"].as_str().unwrap().contains("is being stopped"),
        "{said:#}"
    );
    wait_entry(above, &apart.agent, "agent_ended");
    let delivered = eventually(PATIENCE, || agents(above, session)[0]["delivered"] == true);
    let row = &agents(above, session)[0];
    assert!(delivered && row["state"] == "canceled", "{row:#}");
    check_record(&entries(above, session));
    check_record(&entries(above, &apart.agent));
}
