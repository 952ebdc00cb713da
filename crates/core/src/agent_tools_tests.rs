//! Tools made for the tests of the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

/// Repeats a word.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EchoInput {
    /// The word.
    word: String,
}

pub(super) struct Echo;

impl Tool for Echo {
    type Input = EchoInput;
    const NAME: &'static str = "echo";
    fn category(&self, _: &EchoInput) -> Category {
        Category::Read
    }
    async fn run(&self, input: EchoInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        match input.word.as_str() {
            "panic" => panic!("the tool fell over"),
            "fail" => Err(ToolError::Permanent("it broke".to_owned())),
            "later" => Err(ToolError::Transient("busy".to_owned())),
            word => Ok(ToolOutput::text(word.to_owned())),
        }
    }
}

/// Does something that needs approval.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoInput {}

pub(super) struct Admin(pub(super) Arc<AtomicUsize>);

impl Tool for Admin {
    type Input = NoInput;
    const NAME: &'static str = "admin";
    fn category(&self, _: &NoInput) -> Category {
        Category::Admin
    }
    async fn run(&self, _: NoInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::text("administered"))
    }
}

/// Waits until it is stopped.
#[derive(Deserialize, JsonSchema)]
pub(super) struct HangInput {
    /// True if it ignores being stopped.
    #[serde(default)]
    deaf: bool,
}

pub(super) struct Hang;

impl Tool for Hang {
    type Input = HangInput;
    const NAME: &'static str = "hang";
    fn category(&self, _: &HangInput) -> Category {
        Category::Write
    }
    fn traits(&self) -> ToolTraits {
        ToolTraits {
            timeout: Some(Duration::from_secs(30)),
            ..ToolTraits::default()
        }
    }
    async fn run(&self, input: HangInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        cx.progress.send("waiting");
        cx.cancel.cancelled().await;
        if input.deaf {
            std::future::pending::<()>().await;
        }
        Err(ToolError::Canceled("half a line".to_owned()))
    }
}

/// Takes any text.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteInput {
    text: String,
}

pub(super) struct Note;

impl Tool for Note {
    type Input = NoteInput;
    const NAME: &'static str = "note";
    fn category(&self, _: &NoteInput) -> Category {
        Category::Read
    }
    fn traits(&self) -> ToolTraits {
        ToolTraits {
            raw_text: true,
            ..ToolTraits::default()
        }
    }
    fn take_raw(&self, raw: &str) -> Option<NoteInput> {
        Some(NoteInput { text: raw.to_owned() })
    }
    async fn run(&self, input: NoteInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!("noted {}", input.text)))
    }
}

/// Ends the turn.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DoneInput {
    message: String,
}

pub(super) struct Done;

impl Tool for Done {
    type Input = DoneInput;
    const NAME: &'static str = "done";
    fn category(&self, _: &DoneInput) -> Category {
        Category::Write
    }
    async fn run(&self, input: DoneInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let ends_turn = Some(input.message);
        Ok(ToolOutput {
            content: "Task complete".to_owned(),
            ends_turn,
            ..ToolOutput::default()
        })
    }
}
