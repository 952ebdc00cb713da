//! Keys of traces, metrics and the log file.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

/// OBS-1: levels of the log, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// OBS-1: formats of the log.
const FORMATS: [&str; 2] = ["text", "json"];

pub(super) static SECTION: Section = Section {
    name: "telemetry",
    help: "Traces and metrics for OpenTelemetry.",
    keys: &[
        Key {
            name: "telemetry.endpoint",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, _, v| s.agent.telemetry.endpoint = Some(v),
            },
            help: "Address of an OpenTelemetry collector. Spans and metrics are sent there after each turn, over HTTP.",
            effect: "If unset, nothing is sent. `OTEL_EXPORTER_OTLP_ENDPOINT` and the other standard variables take \
                     precedence.",
            example: "\"http://localhost:4318\"",
            project_ok: false,
        },
        Key {
            name: "telemetry.content",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.telemetry.content = v,
            },
            help: "Whether spans contain messages, and the arguments and results of tool calls.",
            effect: "Otherwise they contain names, times and token counts only. \
                     `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` takes precedence.",
            example: "true",
            project_ok: false,
        },
    ],
};

pub(super) static LOG: Section = Section {
    name: "log",
    help: "The log file, for finding out what the program itself did.",
    keys: &[
        Key {
            name: "log.level",
            kind: Kind::Choice {
                words: || LEVELS.to_vec(),
                default: Some("off"),
                set: |s, _, v| v.clone_into(&mut s.agent.telemetry.log.level),
            },
            help: "Least severe level that is written to the log file.",
            effect: "With `off`, there is no log file. `WINDLASS_LOG` and `--log-level` take precedence.",
            example: "\"info\"",
            project_ok: false,
        },
        Key {
            name: "log.format",
            kind: Kind::Choice {
                words: || FORMATS.to_vec(),
                default: Some("text"),
                set: |s, _, v| s.agent.telemetry.log.is_json = v == "json",
            },
            help: "Format of the log file: lines of text, or one JSON object per line.",
            effect: "Applies to lines written from now on.",
            example: "\"json\"",
            project_ok: false,
        },
        Key {
            name: "log.file",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.telemetry.log.file = Some(v.into()),
            },
            help: "Path of the log file.",
            effect: "If unset, it is `windlass.log` in Windlass's state folder.",
            example: "\"/var/log/windlass.log\"",
            project_ok: false,
        },
        Key {
            name: "log.max_mb",
            kind: Kind::Integer {
                min: 1,
                max: Some(10_000),
                default: Some(10),
                set: |s, _, v| s.agent.telemetry.log.max_mb = v,
            },
            help: "Size in megabytes at which the log file is replaced.",
            effect: "The last three files are kept, as `windlass.log.1` to `.3`.",
            example: "50",
            project_ok: false,
        },
    ],
};
