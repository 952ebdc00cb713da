//! Modes, config options and commands of a session, for the menus of the editor.

use serde_json::{Value, json};
use windlass_api::{Backend, CommandInfo, SessionId};
use windlass_core::permission::Mode;

/// Id and category of the reasoning effort, and its values.
const EFFORT: &str = "thought_level";
const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];

/// Mode, model and effort of a session, and the ones that can be chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Choices {
    mode: String,
    /// `provider/model`; empty if none is set up.
    model: String,
    models: Vec<String>,
    effort: String,
    /// Context window of the model in tokens; 0 if it is not known.
    pub(crate) window: u64,
}

impl Choices {
    /// Reads the choices of a session.
    pub(crate) async fn read(backend: &dyn Backend, session: &SessionId) -> Self {
        let Ok(overview) = backend.overview(session).await else {
            return Self::default();
        };
        let model = match overview.provider.as_str() {
            "" => String::new(),
            provider => format!("{provider}/{}", overview.model),
        };
        const LINE: &str = "/model ";
        let lines = backend.complete(session, LINE).await;
        let mut models: Vec<String> = lines
            .iter()
            .filter_map(|line| line.strip_prefix(LINE).map(str::to_owned))
            .collect();
        if !model.is_empty() && !models.contains(&model) {
            models.insert(0, model.clone());
        }
        Self {
            mode: overview.mode,
            model,
            models,
            effort: overview.effort,
            window: overview.window,
        }
    }

    /// Returns the modes that can be chosen. One without a person is only shown if it is in effect.
    fn offered(&self) -> impl Iterator<Item = Mode> {
        let mode = self.mode.clone();
        Mode::ALL
            .into_iter()
            .filter(move |offered| *offered != Mode::Unattended || mode == offered.name())
    }

    /// Returns `modes`.
    pub(crate) fn modes(&self) -> Value {
        let mode =
            |mode: Mode| json!({ "id": mode.name(), "name": mode.name(), "description": mode.meaning() });
        let modes: Vec<Value> = self.offered().map(mode).collect();
        json!({ "currentModeId": self.mode, "availableModes": modes })
    }

    /// Returns `configOptions`.
    pub(crate) fn options(&self) -> Value {
        let mode =
            |mode: Mode| json!({ "value": mode.name(), "name": mode.name(), "description": mode.meaning() });
        let modes: Vec<Value> = self.offered().map(mode).collect();
        let mut options = vec![json!({
            "id": "mode",
            "name": "Mode",
            "description": "Calls that run without asking",
            "category": "mode",
            "type": "select",
            "currentValue": self.mode,
            "options": modes,
        })];
        if !self.model.is_empty() {
            let model = |model: &String| json!({ "value": model, "name": model });
            options.push(json!({
                "id": "model",
                "name": "Model",
                "description": "Model from the next turn on",
                "category": "model",
                "type": "select",
                "currentValue": self.model,
                "options": self.models.iter().map(model).collect::<Vec<_>>(),
            }));
        }
        if !self.effort.is_empty() {
            let effort = |effort: &&str| json!({ "value": effort, "name": effort });
            options.push(json!({
                "id": EFFORT,
                "name": "Reasoning effort",
                "description": "How much the model reasons before it answers, from the next turn on",
                "category": EFFORT,
                "type": "select",
                "currentValue": self.effort,
                "options": EFFORTS.iter().map(effort).collect::<Vec<_>>(),
            }));
        }
        Value::Array(options)
    }

    /// Returns the command that sets an option; the error names what can be set.
    pub(crate) fn command(&self, option: &str, value: &str) -> Result<String, String> {
        let offered: Vec<String> = match option {
            "mode" => self.offered().map(|mode| mode.name().to_owned()).collect(),
            "model" => self.models.clone(),
            EFFORT => EFFORTS.map(str::to_owned).to_vec(),
            _ => {
                let text =
                    format!("configId: there is no option `{option}`; there are mode, model and {EFFORT}");
                return Err(text);
            }
        };
        if offered.iter().any(|offered| offered == value) {
            let command = if option == EFFORT { "effort" } else { option };
            return Ok(format!("/{command} {value}"));
        }
        Err(format!(
            "`{value}` is no value of `{option}`; expected one of {}",
            offered.join(", ")
        ))
    }

    /// Returns the updates after a change.
    pub(crate) fn updates(&self, before: &Self) -> Vec<Value> {
        if self == before {
            return Vec::new();
        }
        let mut updates = Vec::new();
        if self.mode != before.mode {
            updates.push(json!({ "sessionUpdate": "current_mode_update", "currentModeId": self.mode }));
        }
        updates.push(json!({ "sessionUpdate": "config_option_update", "configOptions": self.options() }));
        updates
    }
}

/// Returns the update with the commands. Those that leave the program do not exist in an editor.
pub(crate) fn commands(catalog: &[CommandInfo]) -> Value {
    let command = |info: &CommandInfo| {
        let mut command = json!({ "name": info.name, "description": info.help });
        if let (false, Some(map)) = (info.arguments.is_empty(), command.as_object_mut()) {
            map.insert("input".to_owned(), json!({ "hint": info.arguments }));
        }
        command
    };
    let shown = catalog.iter().filter(|info| info.name != "exit");
    let commands: Vec<Value> = shown.map(command).collect();
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
}
