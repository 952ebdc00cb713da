//! Prints one JSON object at the end.

use std::io::{self, Write};

use serde_json::json;
use windlass_api::Envelope;

use super::{Printer, RunResult, Style};
use crate::exit::Exit;
use crate::terminal::Stdout;

pub(super) struct JsonPrinter {
    style: Style,
}

impl JsonPrinter {
    pub(super) fn new(style: Style) -> Self {
        Self { style }
    }
}

impl Printer for JsonPrinter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.style.notice_event(&envelope.event);
        Ok(())
    }

    fn idle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, result: &RunResult) -> io::Result<()> {
        print(result)
    }
}

/// Prints a result. `session_id`, `total_cost_usd`, `is_error`, `subtype` and `num_turns` are for scripts that
/// read the output of Claude Code.
pub(crate) fn print(result: &RunResult) -> io::Result<()> {
    let totals = &result.totals;
    let error = result
        .problem
        .as_ref()
        .map(|trouble| json!({ "kind": trouble.kind, "message": trouble.message, "hint": trouble.hint }));
    let is_ok = result.exit == Exit::Ok;
    let subtype = match result.exit {
        Exit::Ok => "success",
        Exit::TurnLimit => "error_max_turns",
        Exit::CostLimit => "error_max_budget_usd",
        _ => "error_during_execution",
    };
    let session = Some(&result.session).filter(|session| !session.is_empty());
    let object = json!({
        "type": "result",
        "subtype": subtype,
        "session": session,
        "session_id": session,
        "ok": is_ok,
        "is_error": !is_ok,
        "exit_code": result.exit as u8,
        "result": result.answer,
        "structured": result.structured,
        "structured_output": result.structured,
        "error": error,
        "provider": totals.provider,
        "model": totals.model,
        "model_calls": totals.model_calls,
        "num_turns": totals.model_calls,
        "tool_calls": totals.tool_calls,
        "usage": totals.usage,
        "cost_usd": totals.cost_usd,
        "total_cost_usd": totals.cost_usd,
        "duration_ms": result.duration_ms,
    });
    let mut out = Stdout;
    writeln!(out, "{object}")?;
    out.flush()
}
