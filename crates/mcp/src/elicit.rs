//! Questions of a server to the person.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};
use windlass_core::permission::Question;
use windlass_core::tool::Person;

use crate::content::{line, plain};

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 30;
/// Attempts at an answer that fits the field.
const ATTEMPTS: usize = 3;
/// The answer that ends a form without sending anything.
const DECLINE: &str = "decline";

/// Asks the person. Without one, the answer is no.
pub(crate) async fn elicit(
    server: &str,
    request: ElicitRequestParams,
    person: Option<Person>,
) -> ElicitResult {
    let Some(person) = person else {
        return result(ElicitationAction::Cancel, None);
    };
    match request {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
            form(server, &plain(&message, 2_000), &schema, &person).await
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            if !is_web {
                return result(ElicitationAction::Decline, None);
            }
            let text = format!(
                "The MCP server {server} asks you to open this page in a browser, and to continue when you are done:\n\
                 {}\n{}",
                line(&url, 2_000),
                plain(&message, 2_000)
            );
            let question = Question {
                text,
                options: vec!["continue".to_owned(), DECLINE.to_owned()],
            };
            match person.ask(&question).await.as_deref().map(str::trim) {
                Some("continue") => result(ElicitationAction::Accept, None),
                Some(_) => result(ElicitationAction::Decline, None),
                None => result(ElicitationAction::Cancel, None),
            }
        }
        _ => result(ElicitationAction::Decline, None),
    }
}

async fn form(server: &str, message: &str, schema: &Value, person: &Person) -> ElicitResult {
    let empty = Map::new();
    let fields = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut content = Map::new();
    if fields.is_empty() {
        let question = Question {
            text: format!("The MCP server {server} asks: {message}"),
            options: vec!["accept".to_owned(), DECLINE.to_owned()],
        };
        return match person.ask(&question).await.as_deref().map(str::trim) {
            Some("accept") => result(ElicitationAction::Accept, Some(Value::Object(content))),
            Some(_) => result(ElicitationAction::Decline, None),
            None => result(ElicitationAction::Cancel, None),
        };
    }
    for (name, field) in fields.iter().take(MAX_FIELDS) {
        let is_required = required.contains(&name.as_str());
        match ask_field(server, message, (name, field), is_required, person).await {
            Filled::Value(value) => {
                content.insert(name.clone(), value);
            }
            Filled::Nothing => {}
            Filled::Declined => return result(ElicitationAction::Decline, None),
            Filled::Gone => return result(ElicitationAction::Cancel, None),
        }
    }
    result(ElicitationAction::Accept, Some(Value::Object(content)))
}

/// Answer to a field.
enum Filled {
    Value(Value),
    Nothing,
    Declined,
    Gone,
}

async fn ask_field(
    server: &str,
    message: &str,
    (name, field): (&String, &Value),
    is_required: bool,
    person: &Person,
) -> Filled {
    let mut problem = String::new();
    for _ in 0..ATTEMPTS {
        let question = Question {
            text: question(server, message, (name, field), is_required, &problem),
            options: choices(field),
        };
        let Some(answer) = person.ask(&question).await else {
            return Filled::Gone;
        };
        let answer = answer.trim();
        if answer == DECLINE || answer == "/decline" {
            return Filled::Declined;
        }
        match (answer.is_empty(), field.get("default")) {
            (true, Some(default)) => return Filled::Value(default.clone()),
            (true, None) if !is_required => return Filled::Nothing,
            _ => {}
        }
        match read(answer, field) {
            Ok(value) => return Filled::Value(value),
            Err(why) => problem = format!("{why}\n"),
        }
    }
    Filled::Gone
}

fn question(
    server: &str,
    message: &str,
    (name, field): (&String, &Value),
    is_required: bool,
    problem: &str,
) -> String {
    let text = |key: &str| field.get(key).and_then(Value::as_str).map(|text| line(text, 300));
    let title = text("title").unwrap_or_else(|| line(name, 100));
    let about = text("description")
        .map(|text| format!(": {text}"))
        .unwrap_or_default();
    let default = match field.get("default") {
        Some(default) => format!(" (an empty answer means {default})"),
        None if !is_required => " (optional)".to_owned(),
        None => String::new(),
    };
    format!(
        "{problem}The MCP server {server} asks: {message}\n{title}{about}{default}. To send nothing, answer `{DECLINE}`."
    )
}

fn choices(field: &Value) -> Vec<String> {
    if field.get("type").and_then(Value::as_str) == Some("boolean") {
        return vec!["yes".to_owned(), "no".to_owned()];
    }
    values(field).into_iter().map(|value| line(&value, 200)).collect()
}

/// Returns the values that a field may have, if they are listed.
fn values(field: &Value) -> Vec<String> {
    let items = field.get("items").unwrap_or(field);
    let plain = items.get("enum").and_then(Value::as_array);
    let titled = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| items.get(key)?.as_array());
    let texts: Vec<String> = match (plain, titled) {
        (Some(list), _) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        (None, Some(list)) => {
            let constant = |entry: &Value| entry.get("const")?.as_str().map(str::to_owned);
            list.iter().filter_map(constant).collect()
        }
        (None, None) => Vec::new(),
    };
    texts.into_iter().take(100).collect()
}

/// Reads an answer as the type of its field.
fn read(answer: &str, field: &Value) -> Result<Value, String> {
    let allowed = values(field);
    let check = |word: &str| match allowed.is_empty() || allowed.iter().any(|value| value == word) {
        true => Ok(Value::String(word.to_owned())),
        false => Err(format!("`{word}` is not one of {}.", allowed.join(", "))),
    };
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => match answer.to_lowercase().as_str() {
            "yes" | "y" | "true" => Ok(Value::Bool(true)),
            "no" | "n" | "false" => Ok(Value::Bool(false)),
            _ => Err("Answer yes or no.".to_owned()),
        },
        Some("integer") => answer
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| "Answer with a whole number.".to_owned()),
        Some("number") => answer
            .parse::<f64>()
            .map(Value::from)
            .map_err(|_| "Answer with a number.".to_owned()),
        Some("array") => answer.split(',').map(|word| check(word.trim())).collect(),
        _ => check(answer),
    }
}

fn result(action: ElicitationAction, content: Option<Value>) -> ElicitResult {
    let mut result = ElicitResult::new(action);
    result.content = content;
    result
}
