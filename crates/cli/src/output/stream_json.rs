//! Prints one JSON event per line, as it happens. The format is `docs/events.schema.json`.

use std::io::{self, BufWriter, Write};

use windlass_api::Envelope;

use super::{Printer, RunResult, Style, json};
use crate::terminal::Stdout;

pub(super) struct StreamJsonPrinter {
    out: BufWriter<Stdout>,
    style: Style,
}

impl StreamJsonPrinter {
    pub(super) fn new(style: Style) -> Self {
        Self {
            out: BufWriter::with_capacity(64 * 1024, Stdout),
            style,
        }
    }
}

impl Printer for StreamJsonPrinter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, envelope)?;
        self.out.write_all(b"\n")
    }

    fn idle(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self, result: &RunResult) -> io::Result<()> {
        self.out.flush()?;
        if self.style.verbose {
            json::print(result)?;
        }
        self.style.trouble(result);
        Ok(())
    }
}
