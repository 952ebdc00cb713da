//! Surroundings of the conversation: the header, the terminal's title, notifications.

use super::{App, Effect};
use crate::header::{Header, at_home};
use crate::text::{cut, one_line};

/// Maximum width of a title.
const TITLE: usize = 60;

impl App {
    /// Adds the header: version, folder, branch, model, mode, instructions.
    pub(super) fn show_header(&mut self) {
        let status = &self.session.status;
        let header = Header {
            folder: self.folder(),
            branch: status.place.branch.clone(),
            model: status.who(),
            mode: status.mode.clone(),
            instructions: status.place.instructions.clone(),
        };
        self.transcript.head(header);
    }

    /// Folder of the session, as it is shown.
    pub(super) fn folder(&self) -> String {
        at_home(
            &one_line(&self.session.info.place),
            self.view.surface.home.as_deref(),
        )
    }

    /// Title of the terminal: the state of the session, its folder and its name.
    pub(crate) fn title(&self) -> Option<String> {
        if !self.view.surface.titles {
            return None;
        }
        let sign = match (self.requests.is_empty(), self.session.is_busy) {
            (false, _) => "? ",
            (true, true) => self.view.theme.sign("● ", "* "),
            (true, false) => "",
        };
        let folder = self.folder();
        let folder = folder
            .rsplit('/')
            .find(|part| !part.is_empty())
            .unwrap_or(&folder);
        Some(cut(&format!("{sign}windlass: {folder}"), TITLE))
    }

    /// Notifies the user if the terminal is not focused.
    pub(super) fn attention(&mut self, what: &str) {
        if !self.view.is_focused {
            let folder = self.folder();
            let folder = folder.rsplit('/').next().unwrap_or_default().to_owned();
            self.effect(Effect::Notify(format!("{folder}: {what}")));
        }
    }
}
