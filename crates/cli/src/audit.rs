//! DIST-7: `windlass audit`: lists, exports and checks the audit log.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use windlass_config::environment::{self, Given};
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{AuditQuery, AuditRecord, AuditRow, LogError, Store, UserName};
use windlass_core::text::count;
use windlass_host::account::{Account, auditor};
use windlass_server::{Accounts, Today};
use windlass_users::{Auditor, PRUNED, verify};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::session_choice::{problem, store};
use crate::terminal::{plain, say, tell};
use crate::trust::TrustChange;
use windlass_args::{AuditCommand, AuditOptions};

/// Rows read at a time.
const PAGE: usize = 1_000;
/// Milliseconds of a day.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// Maximum number of characters of a line's details.
const DETAIL: usize = 160;

/// Runs a subcommand.
pub(crate) async fn command(command: AuditCommand) -> Result<Exit, Problem> {
    let store = store()?;
    match command {
        AuditCommand::List(options) => {
            let query = AuditQuery {
                limit: options.limit,
                is_latest: true,
                ..query(&options)?
            };
            let rows = store.audited(&query).await.map_err(problem)?;
            if rows.is_empty() && !options.json {
                tell!("The audit log has no such rows.");
            }
            for row in rows {
                print(&row, options.json)?;
            }
            Ok(Exit::Ok)
        }
        AuditCommand::Export(options) => export(&*store, &options).await,
        AuditCommand::Verify { head } => check(&*store, head.as_deref()).await,
        AuditCommand::Prune => {
            let settings = environment::settings(&Given::default(), &working_directory(None)?)?;
            let gone = prune(&store, &settings).await?;
            say!("removed {}", count(gone, "row"));
            Ok(Exit::Ok)
        }
    }
}

fn query(options: &AuditOptions) -> Result<AuditQuery, Problem> {
    Ok(AuditQuery {
        user: options.user.0.clone(),
        session: options.session.as_deref().map(SessionId::from),
        action: options.action.clone(),
        since: options.since.as_deref().map(since).transpose()?,
        ..AuditQuery::default()
    })
}

/// Reads a date, or a duration before now.
fn since(text: &str) -> Result<Timestamp, Problem> {
    let now = environment::clock().now();
    if let Ok(span) = windlass_cron::duration(text) {
        let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        return Ok(Timestamp(now.0.saturating_sub(span)));
    }
    let date = text.parse::<jiff::civil::Date>().ok();
    let start = date.and_then(|date| date.to_zoned(TimeZone::system()).ok());
    let millis = start.and_then(|start| u64::try_from(start.timestamp().as_millisecond()).ok());
    millis.map(Timestamp).ok_or_else(|| {
        Problem::usage(format!(
            "--since {text}: write a date such as 2026-01-31, or a time such as 12h or 7d"
        ))
    })
}

async fn export(store: &dyn Store, options: &AuditOptions) -> Result<Exit, Problem> {
    let mut after = 0;
    loop {
        let query = AuditQuery {
            after,
            limit: PAGE,
            ..query(options)?
        };
        let rows = store.audited(&query).await.map_err(problem)?;
        let Some(last) = rows.last() else {
            return Ok(Exit::Ok);
        };
        after = last.number;
        for row in &rows {
            print(row, true)?;
        }
    }
}

/// Prints a row as JSON, with what its hash covers, or on one line.
fn print(row: &AuditRow, is_json: bool) -> Result<(), Problem> {
    if is_json {
        let line = serde_json::to_string(row);
        say!(
            "{}",
            line.map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?
        );
        return Ok(());
    }
    let Ok(record) = serde_json::from_str::<AuditRecord>(&row.content) else {
        say!("{:>6}  damaged", row.number);
        return Ok(());
    };
    let time = i64::try_from(record.time.0).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or_default();
    let time = time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
    let by = record
        .credential
        .map(|name| format!(" ({name})"))
        .unwrap_or_default();
    let session = record.session.as_ref().map(|session| session.as_str());
    let session = session
        .map(|session| session.get(..8).unwrap_or(session))
        .unwrap_or("-");
    let detail: String = Value::Object(record.detail)
        .to_string()
        .chars()
        .take(DETAIL)
        .collect();
    say!(
        "{:>6}  {time}  {}{}  {session}  {}  {}",
        row.number,
        record.user,
        plain(&by),
        plain(&record.action),
        plain(&detail)
    );
    Ok(())
}

async fn check(store: &dyn Store, head: Option<&str>) -> Result<Exit, Problem> {
    let noted = head.map(|head| {
        let split = head.split_once(':');
        let split = split.and_then(|(number, hash)| Some((number.parse::<u64>().ok()?, hash)));
        split.ok_or_else(|| {
            Problem::usage(format!(
                "--head {head}: write NUMBER:HASH, as an earlier check printed it"
            ))
        })
    });
    match verify(store, noted.transpose()?).await {
        Ok(found) => {
            if found.pruned > 0 {
                say!("rows up to {} were removed because of their age", found.pruned);
            }
            say!("{} rows, none removed or changed", found.rows);
            say!("head: {}:{}", found.last.0, found.last.1);
            Ok(Exit::Ok)
        }
        Err(fault) => Err(Problem::new(ProblemKind::Failed, format!("audit log: {fault}"))),
    }
}

/// Removes rows that are older than the settings keep them, and records it. Returns their number.
pub(crate) async fn prune(store: &Arc<dyn Store>, settings: &Settings) -> Result<u64, Problem> {
    let Some(days) = settings.agent.session.server.audit.days else {
        return Ok(0);
    };
    let now = environment::clock().now();
    let before = Timestamp(now.0.saturating_sub(days.saturating_mul(DAY)));
    let gone = store.prune_audit(before).await.map_err(problem)?;
    if gone > 0 {
        note(store, PRUNED, json!({ "rows": gone, "days": days })).await?;
    }
    Ok(gone)
}

/// Records a change of trust in a folder.
pub(crate) async fn trusted((exit, change): (Exit, Option<TrustChange>)) -> Result<Exit, Problem> {
    if let Some(TrustChange { action, folder }) = change {
        note(&store()?, action, json!({ "folder": folder })).await?;
    }
    Ok(exit)
}

/// Records something that the user of this machine does.
pub(crate) async fn note(store: &Arc<dyn Store>, action: &str, detail: Value) -> Result<(), Problem> {
    let detail = match detail {
        Value::Object(detail) => detail,
        _ => serde_json::Map::new(),
    };
    let record = AuditRecord {
        front_end: "cli".to_owned(),
        action: action.to_owned(),
        detail,
        ..AuditRecord::default()
    };
    auditor(store).record(record).await.map_err(problem)
}

/// The audit log and the limits, for the server.
pub(crate) struct LocalAccounts {
    auditor: Auditor,
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
}

impl LocalAccounts {
    pub(crate) fn new(store: &Arc<dyn Store>, settings: &Arc<Settings>) -> Self {
        Self {
            auditor: auditor(store),
            store: Arc::clone(store),
            settings: Arc::clone(settings),
        }
    }
}

#[async_trait]
impl Accounts for LocalAccounts {
    async fn record(&self, record: AuditRecord) -> Result<(), LogError> {
        self.auditor.record(record).await
    }

    async fn today(&self, user: &UserName) -> Result<Option<Today>, LogError> {
        let account = Account::default().of(user);
        let budget = account.budget(&self.settings, Some(&self.store));
        let budget = budget.map_err(|problem| LogError::Failed(problem.to_string()))?;
        let Some(budget) = budget else { return Ok(None) };
        let left = budget.left().await?;
        Ok(Some(Today {
            cost_usd: left.cost_usd,
            max_cost_usd: left.limits.cost_usd,
            tokens: left.tokens,
            max_tokens: left.limits.tokens,
            turns: left.turns,
            max_turns: left.limits.turns,
            text: left.to_string(),
        }))
    }
}
