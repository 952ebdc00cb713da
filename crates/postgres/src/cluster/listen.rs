//! Listens to notifications on a connection of its own.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio_postgres::AsyncMessage;
use windlass_core::log::{LogError, Notice};

use super::inbox::notice;
use crate::context::Context;
use crate::failure::Fault;
use crate::tls;

/// Pause before a lost connection is made again.
const PAUSE: Duration = Duration::from_millis(500);

/// Passes notices on until nobody reads them.
pub(super) async fn listen(context: Rc<Context>, server: String, notices: UnboundedSender<Notice>) {
    loop {
        tokio::select! {
            () = notices.closed() => return,
            _ = connected(&context, &server, &notices) => {}
        }
        tokio::select! {
            () = notices.closed() => return,
            () = context.clock.sleep(PAUSE) => {}
        }
    }
}

/// Listens until the connection is lost.
async fn connected(context: &Context, server: &str, notices: &UnboundedSender<Notice>) -> Result<(), Fault> {
    let (config, trust) = context.listener();
    let (client, mut connection) = config.connect(tls::connector(trust)?).await?;
    let passed_on = async {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(told) = message?
                && let Some(told) = notice(told.payload())
                && notices.send(told).is_err()
            {
                break;
            }
        }
        Ok::<(), Fault>(())
    };
    let begun = async {
        let row = client
            .query_one(
                "SELECT 'wl_' || md5($1::text), pg_backend_pid()::bigint",
                &[&server],
            )
            .await?;
        let channel: String = row.get(0);
        client
            .batch_execute(&format!(
                "SET application_name = 'windlass {channel}'; LISTEN wl_all; LISTEN {channel}"
            ))
            .await?;
        client
            .execute(
                "UPDATE server SET listen_pid = $2 WHERE id = $1",
                &[&server, &row.get::<_, i64>(1)],
            )
            .await?;
        // Anything may have been missed until now.
        notices
            .send(Notice::Again)
            .map_err(|_| LogError::Failed("nobody listens".to_owned()))?;
        std::future::pending::<Result<(), Fault>>().await
    };
    tokio::select! {
        ended = passed_on => ended,
        failed = begun => failed,
    }
}
