//! Changes the file of jobs without losing comments and order.

use toml_edit::{DocumentMut, Item, Table, Value};

use super::{JobFileContext, JobFileError, parse};
use crate::job::check_id;

/// Reason the file was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file has mistakes, or would have.
    #[error(transparent)]
    Invalid(#[from] JobFileError),
    /// There is a job of that name.
    #[error("there is already a job `{0}`; choose another name, or remove it first")]
    Exists(String),
    /// There is no job of that name.
    #[error("there is no job `{id}`{hint}")]
    Unknown {
        /// The name.
        id: String,
        /// The existing jobs.
        hint: String,
    },
    /// The name cannot be used.
    #[error("`{0}` is not a name of a job: {1}")]
    Name(String, String),
}

/// A job to be added: its name, and its keys.
#[derive(Debug, Clone, Default)]
pub struct NewJob {
    /// Name of the job.
    pub id: String,
    /// Keys and values, in order.
    pub keys: Vec<(&'static str, Value)>,
}

/// Returns the text of the file with one more job.
///
/// # Errors
/// Fails if the file has mistakes or the job has.
pub fn add_job(text: &str, job: &NewJob, context: &JobFileContext) -> Result<String, EditError> {
    check_id(&job.id).map_err(|why| EditError::Name(job.id.clone(), why))?;
    if parse(text, context)?.iter().any(|known| known.id == job.id) {
        return Err(EditError::Exists(job.id.clone()));
    }
    let mut document = document(text);
    let jobs = document.entry("jobs").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let mut table = Table::new();
    for (name, value) in &job.keys {
        table.insert(name, Item::Value(value.clone()));
    }
    if let Some(jobs) = jobs.as_table_like_mut() {
        jobs.insert(&job.id, Item::Table(table));
    }
    checked(document, context)
}

/// Returns the text of the file without a job.
///
/// # Errors
/// Fails if there is no such job.
pub fn remove_job(text: &str, id: &str, context: &JobFileContext) -> Result<String, EditError> {
    let mut document = document(text);
    let jobs = document.get_mut("jobs").and_then(Item::as_table_like_mut);
    match jobs.and_then(|jobs| jobs.remove(id)) {
        // A job with a mistake can be removed as well.
        Some(_) => Ok(document.to_string()),
        None => Err(no_job(text, id, context)),
    }
}

/// Returns the text of the file with a job enabled or disabled.
///
/// # Errors
/// Fails if there is no such job, or the file has mistakes.
pub fn set_enabled(
    text: &str,
    id: &str,
    is_enabled: bool,
    context: &JobFileContext,
) -> Result<String, EditError> {
    let mut document = document(text);
    let jobs = document.get_mut("jobs").and_then(Item::as_table_like_mut);
    let job = jobs
        .and_then(|jobs| jobs.get_mut(id))
        .and_then(Item::as_table_like_mut);
    let Some(job) = job else {
        return Err(no_job(text, id, context));
    };
    match job.get_mut("enabled").and_then(Item::as_value_mut) {
        Some(value) => {
            let decor = value.decor().clone();
            *value = Value::from(is_enabled);
            *value.decor_mut() = decor;
        }
        None => {
            job.insert("enabled", Item::Value(Value::from(is_enabled)));
        }
    }
    checked(document, context)
}

/// Parses the text; a text that cannot be parsed is reported when the result is checked.
fn document(text: &str) -> DocumentMut {
    text.parse().unwrap_or_default()
}

fn checked(document: DocumentMut, context: &JobFileContext) -> Result<String, EditError> {
    let text = document.to_string();
    parse(&text, context)?;
    Ok(text)
}

fn no_job(text: &str, id: &str, context: &JobFileContext) -> EditError {
    let jobs = match parse(text, context) {
        Ok(jobs) => jobs,
        Err(error) => return error.into(),
    };
    let names: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    let hint = match names.as_slice() {
        [] => "; `windlass cron add` adds one".to_owned(),
        names => format!("; there is {}", names.join(", ")),
    };
    EditError::Unknown {
        id: id.to_owned(),
        hint,
    }
}
