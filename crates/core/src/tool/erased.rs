//! Typed tools behind one object-safe trait. This is the only place where arguments become types.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::shape::misplaced_list;
use super::{
    Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, ToolTraits,
    parse_strict,
};
use crate::id::CallId;
use crate::permission::{Blocked, Escalation, Proposal, Subject};
use crate::text::in_plain_words;

/// A tool whose argument type has been erased. Created by [`erase`], or implemented directly by tools whose
/// schema is only known at run time.
pub trait AnyTool: Send + Sync {
    /// Returns the tool as a model sees it.
    fn spec(&self) -> &ToolSpec;

    /// Returns the scheduling properties.
    fn traits(&self) -> ToolTraits;

    /// Validates the arguments. Must have no effect.
    ///
    /// # Errors
    /// [`ToolError::Invalid`] naming the field and the expected value.
    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError>;

    /// Returns a digest of the tool's definition if its name alone does not identify it, because a user's
    /// file defines it.
    fn definition(&self) -> Option<String> {
        None
    }
}

/// A validated call, ready to run once.
pub struct Prepared {
    /// Kind of effect this call will have.
    pub category: Category,
    /// Arguments as a value, for rules and for display.
    pub arguments: Value,
    /// Subjects of the call, part by part, for rules.
    pub subjects: Vec<Subject>,
    /// Reason the tool refuses the call, whatever the rules say.
    pub refusal: Option<String>,
    /// Reasons to ask the user first.
    pub reasons: Vec<String>,
    /// Access beyond the default that the call needs.
    pub escalation: Escalation,
    /// The list of blocked commands that the call is on.
    pub blocked: Option<Blocked>,
    places: Vec<PathBuf>,
    shown: Option<String>,
    /// Name and definition of the tool that the call is really for.
    target: Option<(String, Option<String>)>,
    work: Box<dyn Work>,
}

/// The work of a prepared call.
trait Work: Send {
    fn preview(&self, execution: &ExecutionContext) -> Option<String>;
    fn run(self: Box<Self>, cx: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

impl<F> Work for F
where
    F: FnOnce(ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send,
{
    fn preview(&self, _: &ExecutionContext) -> Option<String> {
        None
    }

    fn run(self: Box<Self>, cx: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self(cx)
    }
}

struct Typed<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

impl<T: Tool> Work for Typed<T> {
    fn preview(&self, execution: &ExecutionContext) -> Option<String> {
        self.tool.preview(&self.input, execution)
    }

    fn run(self: Box<Self>, cx: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.tool.run(self.input, cx).await })
    }
}

impl Prepared {
    /// Creates a call that will run `run`.
    pub fn new(
        category: Category,
        arguments: Value,
        run: impl FnOnce(ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + 'static,
    ) -> Self {
        Self {
            category,
            arguments,
            subjects: Vec::new(),
            refusal: None,
            reasons: Vec::new(),
            escalation: Escalation::default(),
            blocked: None,
            places: Vec::new(),
            shown: None,
            target: None,
            work: Box::new(run),
        }
    }

    /// Sets the judgement of the call.
    #[must_use]
    pub fn with_judgement(mut self, judgement: Judgement) -> Self {
        self.category = judgement.category;
        self.subjects = judgement.subjects;
        self.refusal = judgement.refusal;
        self.reasons = judgement.reasons;
        self.escalation = judgement.escalation;
        self.blocked = judgement.blocked;
        self.places = judgement.places;
        self
    }

    /// Sets the preview of the call.
    #[must_use]
    pub fn with_preview(mut self, text: String) -> Self {
        self.shown = Some(text);
        self
    }

    /// States the tool that the call is really for, with its definition. Rules and people judge the call by it.
    #[must_use]
    pub fn on_behalf_of(mut self, tool: &dyn AnyTool) -> Self {
        self.target = Some((tool.spec().name.clone(), tool.definition()));
        self
    }

    /// The call as rules and people judge it.
    pub fn proposal(&self, call_id: &CallId, tool: &str, cwd: &Path) -> Proposal {
        Proposal {
            call_id: call_id.clone(),
            tool: self.target.as_ref().map_or(tool, |(name, _)| name).to_owned(),
            cwd: cwd.to_owned(),
            definition: self
                .target
                .as_ref()
                .and_then(|(_, definition)| definition.clone()),
            preview: None,
            category: self.category,
            arguments: self.arguments.clone(),
            subjects: self.subjects.clone(),
            refusal: self.refusal.clone(),
            reasons: self.reasons.clone(),
            escalation: self.escalation,
            blocked: self.blocked.clone(),
        }
    }

    /// Returns a preview of the call for people. May read the disk.
    pub fn preview(&self, execution: &ExecutionContext) -> Option<String> {
        self.shown.clone().or_else(|| self.work.preview(execution))
    }

    /// Runs the call.
    pub fn run(self, mut cx: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        cx.places = Arc::new(self.places);
        self.work.run(cx)
    }
}

/// Erases a tool's argument type and derives its schema, once, at registration.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    Arc::new(Erased {
        spec: known_spec::<T>(),
        tool: Arc::new(tool),
    })
}

struct Erased<T> {
    spec: ToolSpec,
    tool: Arc<T>,
}

impl<T: Tool> AnyTool for Erased<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        self.tool.traits()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        // Several providers send an empty text for a call without arguments.
        let text = if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        };
        let (input, value) = match parse_strict(text) {
            Ok(value) => (self.decode(&value)?, value),
            Err(error) => self.decode_raw(arguments, &error)?,
        };
        let judgement = self.tool.judge(&input);
        Ok(Prepared {
            category: judgement.category,
            arguments: value,
            subjects: judgement.subjects,
            refusal: judgement.refusal,
            reasons: judgement.reasons,
            escalation: judgement.escalation,
            blocked: judgement.blocked,
            places: judgement.places,
            shown: None,
            target: None,
            work: Box::new(Typed {
                tool: Arc::clone(&self.tool),
                input,
            }),
        })
    }
}

impl<T: Tool> Erased<T> {
    fn decode(&self, value: &Value) -> Result<T::Input, ToolError> {
        if !value.is_object() {
            return Err(ToolError::Invalid(format!(
                "Invalid arguments for {}: they must be one JSON object that matches the tool's schema, not {}.",
                T::NAME,
                kind_of(value)
            )));
        }
        if let Some(place) = misplaced_list(value, &known_spec::<T>().schema) {
            let place = place.trim_start_matches('.');
            return Err(ToolError::Invalid(format!(
                "Invalid arguments for {}: `{place}` must be an object, not a list.",
                T::NAME
            )));
        }
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            let place = if path == "." {
                String::new()
            } else {
                format!("`{path}`: ")
            };
            ToolError::Invalid(format!(
                "Invalid arguments for {}: {place}{}",
                T::NAME,
                in_plain_words(&error.inner().to_string())
            ))
        })
    }

    fn decode_raw(&self, raw: &str, error: &serde_json::Error) -> Result<(T::Input, Value), ToolError> {
        let taken = if self.tool.traits().raw_text {
            self.tool.take_raw(raw)
        } else {
            None
        };
        match taken {
            Some(input) => Ok((input, serde_json::json!({ "_raw": raw }))),
            None => Err(ToolError::Invalid(format!(
                "Invalid arguments for {}: not valid JSON ({error}). Send one JSON object that matches the tool's schema.",
                T::NAME
            ))),
        }
    }
}

/// Returns the kind of a JSON value, with its article.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the spec of a tool type. It never changes, so it is created once and shared by all sessions.
fn known_spec<T: Tool>() -> ToolSpec {
    static KNOWN: Mutex<BTreeMap<TypeId, ToolSpec>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .entry(TypeId::of::<T>())
        .or_insert_with(spec_of::<T>)
        .clone()
}

/// Builds the schema without parts that only cost tokens: the meta-schema's address and the type's Rust name.
fn spec_of<T: Tool>() -> ToolSpec {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T::Input>()
        .to_value();
    let mut description = String::new();
    if let Value::Object(map) = &mut schema {
        map.shift_remove("title");
        if let Some(Value::String(text)) = map.shift_remove("description") {
            description = unwrapped(&text);
        }
        map.entry("type")
            .or_insert_with(|| Value::String("object".to_owned()));
        map.entry("properties")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
        tidy_properties(map);
    }
    ToolSpec {
        name: T::NAME.to_owned(),
        description,
        schema: Arc::new(schema),
    }
}

/// Drops parts that no model needs: number formats (`uint32`), null defaults, and the `null` of optional
/// fields, which are simply omitted. Several servers do not support a list of types. That other fields are refused
/// is said once, about the arguments as a whole.
fn tidy_properties(schema: &mut serde_json::Map<String, Value>) {
    schema.shift_remove("format");
    // A default that says nothing, and the limit of every unsigned number.
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        value => *value == 0,
    };
    if schema.get("default").is_some_and(is_empty) {
        schema.shift_remove("default");
    }
    if schema.get("minimum").is_some_and(|least| *least == 0) {
        schema.shift_remove("minimum");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = unwrapped(text);
    }
    for value in schema.values_mut() {
        match value {
            Value::Object(map) => {
                if map.get("additionalProperties") == Some(&Value::Bool(false)) {
                    map.shift_remove("additionalProperties");
                }
                tidy_properties(map);
            }
            Value::Array(list) => {
                list.iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(tidy_properties);
            }
            _ => {}
        }
    }
}

/// Joins the lines of each paragraph of a doc comment: its line breaks carry no meaning.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n");
    paragraphs
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
