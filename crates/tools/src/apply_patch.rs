//! `apply_patch`: changes several files at once, all or nothing.

mod apply;
mod commit;
mod envelope;
mod fit;
mod names;
mod parse;
mod patch;
mod plan;
mod report;
mod search;
mod source;
mod unified;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::tool::{
    Category, ExecutionContext, Judgement, Tool, ToolContext, ToolError, ToolOutput, ToolTraits,
};

use self::patch::{FilePatch, PatchError};
use self::plan::Plan;
use crate::blocking;
use crate::ledger::FileLedger;
use windlass_sandbox::Workspace;

/// Changes several files, all or none. Takes a unified diff, or between `*** Begin Patch` and `*** End Patch`:
/// `*** Add File: path` and lines with +; `*** Delete File: path`; `*** Update File: path`, maybe `*** Move to: path`,
/// then hunks: `@@ line above the place`, and lines with a blank, - or +.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyPatchInput {
    #[serde(alias = "input", alias = "diff")]
    patch: String,
}

/// The tool.
pub(crate) struct ApplyPatch {
    pub(crate) ledger: FileLedger,
    pub(crate) workspace: Workspace,
}

impl Tool for ApplyPatch {
    type Input = ApplyPatchInput;
    const NAME: &'static str = "apply_patch";

    fn category(&self, _: &ApplyPatchInput) -> Category {
        Category::Write
    }

    /// Judges every path; the call needs the highest category among them.
    fn judge(&self, input: &ApplyPatchInput) -> Judgement {
        let mut all = Judgement::of(Category::Write);
        let Ok(patches) = parse::parse(&input.patch) else {
            return all;
        };
        for path in patches.iter().flat_map(FilePatch::paths) {
            let one = self.workspace.writing(path);
            all.category = all.category.max(one.category);
            for subject in one.subjects {
                if !all.subjects.contains(&subject) {
                    all.subjects.push(subject);
                }
            }
            for reason in one.reasons {
                if !all.reasons.contains(&reason) {
                    all.reasons.push(reason);
                }
            }
            all.refusal = all.refusal.or(one.refusal);
            all.escalation.outside |= one.escalation.outside;
            all.escalation.protected |= one.escalation.protected;
            all.places.extend(one.places);
        }
        all
    }

    fn preview(&self, input: &ApplyPatchInput, execution: &ExecutionContext) -> Option<String> {
        let patches = parse::parse(&input.patch).ok()?;
        let places = Arc::new(self.judge(input).places);
        let roots = self.workspace.files().judged(&places);
        let plan = Plan::make(&roots, &self.ledger, execution, &patches).ok()?;
        Some(report::diff(&plan))
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            raw_text: true,
            ..ToolTraits::default()
        }
    }

    fn take_raw(&self, raw: &str) -> Option<ApplyPatchInput> {
        parse::looks_like_patch(raw).then(|| ApplyPatchInput {
            patch: raw.to_owned(),
        })
    }

    async fn run(&self, input: ApplyPatchInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.workspace.settle(&cx).await;
        let (ledger, roots) = (self.ledger.clone(), self.workspace.files_of(&cx));
        blocking::change(move || {
            let patches = parse::parse(&input.patch)
                .map_err(|error: PatchError| ToolError::Invalid(format!("{error} Nothing was changed.")))?;
            let plan = Plan::make(&roots, &ledger, &cx.execution, &patches)?;
            commit::commit(&roots, &ledger, &plan)?;
            Ok(report::report(&plan))
        })
        .await
    }
}

/// Parses a patch and applies it without a disk, for fuzzing.
pub(crate) fn fuzz(text: &str, file: &str) {
    let patches = parse::parse(text);
    assert_eq!(patches, parse::parse(text), "parsing is deterministic");
    if patches.is_ok() {
        assert!(parse::looks_like_patch(text), "a valid patch is recognised");
    }
    for patch in patches.unwrap_or_default() {
        match apply::apply(file, &patch) {
            Ok(applied) => assert_eq!(apply::apply(file, &patch), Ok(applied)),
            Err(misfit) => {
                let _ = report::misfit(&patch, &misfit, &patch.path, file);
            }
        }
    }
}

/// Creates the diff between two texts and applies it, for fuzzing: the result must equal the new text byte
/// for byte.
pub(crate) fn fuzz_diff(old: &str, new: &str) {
    let diff = windlass_checkpoint::diff::Change::between("x", old, new).diff();
    // A long diff is cut, and only one of the two sides splits a line at a CR inside it.
    let plain = |text: &str| !text.replace("\r\n", "\n").contains('\r');
    if old == new || diff.ends_with("[… diff cut …]\n") || !plain(old) || !plain(new) {
        return;
    }
    let patches = parse::parse(&diff).unwrap_or_default();
    assert_eq!(patches.len(), 1, "one file: {diff}");
    for patch in patches {
        let applied = apply::apply(old, &patch).map(|applied| applied.text);
        assert_eq!(applied.as_deref(), Ok(new), "{diff}");
    }
}
