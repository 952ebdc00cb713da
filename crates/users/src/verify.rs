//! Checks the chain of the audit log.

use windlass_core::log::{AuditColumns, AuditHead, AuditQuery, AuditRecord, LogError, Store};

use crate::audit::row_hash;

/// Action of the row that records that older ones were removed because of their age.
pub const PRUNED: &str = "audit_pruned";

/// Rows read at a time.
const PAGE: usize = 1_000;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Number of rows.
    pub rows: u64,
    /// Number of the last row that was removed because of its age.
    pub pruned: u64,
    /// Number and hash of the last row. A copy of these, kept elsewhere, also reveals rows that were removed from the end.
    pub last: (u64, String),
}

/// Reason the audit log cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// A row is missing.
    #[error("rows {0} to {1} were removed")]
    Missing(u64, u64),
    /// A row does not fit its hash.
    #[error("row {0} was changed")]
    Changed(u64),
    /// A row does not continue the one before.
    #[error("row {0} does not follow the row before it: one of the two was replaced")]
    Broken(u64),
    /// The row that was noted elsewhere is another one here.
    #[error("row {0} is not the one whose hash you gave")]
    Other(u64),
    /// The row that was noted elsewhere is older than every row that is left.
    #[error(
        "row {0} cannot be checked: the rows up to {1} were removed because of their age. Give a newer one"
    )]
    TooOld(u64, u64),
    /// Rows are gone as if they had been too old, and nothing records their removal.
    #[error("the rows up to {0} were removed, and no later row records that they were too old")]
    Unrecorded(u64),
    /// The store failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Checks every row. `noted` is the number and the hash of a row as an earlier check printed them.
///
/// # Errors
/// The first row that was removed or changed.
pub async fn verify(
    store: &(impl Store + ?Sized),
    noted: Option<(u64, &str)>,
) -> Result<Verified, AuditFault> {
    // Rows that are added meanwhile come after this one.
    let head = store.audit_head().await?;
    let mut last = (head.pruned, head.pruned_hash.clone());
    match noted {
        Some((number, _)) if number < head.pruned => return Err(AuditFault::TooOld(number, head.pruned)),
        Some((number, hash)) if number == head.pruned && number > 0 && hash != head.pruned_hash => {
            return Err(AuditFault::Other(number));
        }
        _ => {}
    }
    let mut is_recorded = head.pruned == 0;
    let mut rows = 0;
    loop {
        let query = AuditQuery {
            after: last.0,
            limit: PAGE,
            ..AuditQuery::default()
        };
        let page = store.audited(&query).await?;
        if page.is_empty() {
            break;
        }
        for row in page {
            if row.number != last.0 + 1 {
                return Err(AuditFault::Missing(last.0 + 1, row.number - 1));
            }
            if row.previous != last.1 {
                return Err(AuditFault::Broken(row.number));
            }
            let record = serde_json::from_str::<AuditRecord>(&row.content).ok();
            let record = record.filter(|_| row.hash == row_hash(row.number, &row.previous, &row.content));
            // Rows whose columns say something else would be missing from every selection.
            let record = record.filter(|record| row.selected_by == AuditColumns::from(record));
            let Some(record) = record else {
                return Err(AuditFault::Changed(row.number));
            };
            is_recorded |= record.action == PRUNED;
            if noted.is_some_and(|(number, hash)| number == row.number && hash != row.hash) {
                return Err(AuditFault::Other(row.number));
            }
            last = (row.number, row.hash);
            rows += 1;
        }
    }
    if last.0 < head.number {
        return Err(AuditFault::Missing(last.0 + 1, head.number));
    }
    check_end(&head, &last)?;
    if let Some((number, _)) = noted.filter(|(number, _)| *number > last.0) {
        return Err(AuditFault::Missing(last.0 + 1, number));
    }
    if !is_recorded {
        return Err(AuditFault::Unrecorded(head.pruned));
    }
    Ok(Verified {
        rows,
        pruned: head.pruned,
        last,
    })
}

fn check_end(head: &AuditHead, last: &(u64, String)) -> Result<(), AuditFault> {
    match last.0 == head.number && last.1 != head.hash {
        true => Err(AuditFault::Changed(last.0)),
        false => Ok(()),
    }
}
