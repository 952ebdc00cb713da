//! Prints one JSON object at the end.

use std::io::{self, Write};

use serde_json::json;
use windlass_api::Envelope;

use super::{Printer, RunResult, Style};

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
        let totals = &result.totals;
        let error = result
            .problem
            .as_ref()
            .map(|trouble| json!({ "kind": trouble.kind, "message": trouble.message, "hint": trouble.hint }));
        let object = json!({
            "type": "result",
            "session": result.session,
            "ok": result.exit == crate::exit::Exit::Ok,
            "exit_code": result.exit as u8,
            "result": result.answer,
            "structured": result.structured,
            "error": error,
            "provider": totals.provider,
            "model": totals.model,
            "model_calls": totals.model_calls,
            "tool_calls": totals.tool_calls,
            "usage": totals.usage,
            "cost_usd": totals.cost_usd,
            "duration_ms": result.duration_ms,
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{object}")?;
        out.flush()
    }
}
