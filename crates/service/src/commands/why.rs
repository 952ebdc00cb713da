//! `/why`: the wait chain of the running turn.

use super::{CommandContext, Outcome, Said, Words};
use crate::why::lines;

pub(super) async fn why(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    let chain = cx.why();
    Ok(Said::text(match (chain.is_empty(), cx.is_busy) {
        (false, _) => lines(&chain),
        (true, true) => "A turn runs, and it is about to end.".to_owned(),
        (true, false) => "Nothing runs; the session waits for you.".to_owned(),
    }))
}
