//! `windlass sessions delete`: asks before it deletes.

use windlass_core::log::{LogError, SessionInfo, Store};
use windlass_core::text::count;

use super::called;
use crate::asking::confirm;
use crate::exit::Exit;
use crate::session_choice::{find, line, problem};
use crate::terminal::{plain, say, tell};
use windlass_config::Problem;
use windlass_config::environment;
use windlass_host::factory::delete_session;

/// Deletes all named sessions, or none if one of them cannot be deleted.
pub(super) async fn delete(store: &dyn Store, names: &[String], yes: bool) -> Result<Exit, Problem> {
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for name in names {
        let info = find(store, name).await?;
        if sessions.iter().all(|known| known.id != info.id) {
            sessions.push(info);
        }
    }
    for info in &sessions {
        if let Some(owner) = store.holder(&info.id).await.map_err(problem)? {
            let session = info.id.clone();
            return Err(problem(LogError::Busy { session, owner }));
        }
    }
    if !yes && !agreed(&sessions)? {
        tell!("nothing was deleted");
        return Ok(Exit::Denied);
    }
    let folders = environment::folders()?;
    for info in &sessions {
        delete_session(store, &folders, &info.id).await.map_err(problem)?;
        say!(
            "deleted {}  {}  {}",
            info.id,
            count(info.totals.messages, "message"),
            called(info)
        );
    }
    Ok(Exit::Ok)
}

/// Asks the user at the terminal. Without a terminal the answer is no.
fn agreed(sessions: &[SessionInfo]) -> Result<bool, Problem> {
    let alone = "nothing was deleted: there is no terminal to ask on; --yes deletes without asking";
    let question = match sessions.len() {
        1 => "Delete this session permanently?".to_owned(),
        count => format!("Delete these {count} sessions permanently?"),
    };
    confirm(alone, || {
        for info in sessions {
            say!("{}", plain(&line(info)));
        }
        question
    })
}
