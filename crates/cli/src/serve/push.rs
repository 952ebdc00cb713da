//! WEB-6: the file of web push.

use windlass_config::private_file::PrivateFile;
use windlass_server::PushFile;

/// Key and subscriptions in a file that only the user can read.
pub(super) struct Subscriptions(pub(super) PrivateFile);

impl Subscriptions {
    fn told(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.0.path().display())
    }
}

impl PushFile for Subscriptions {
    fn read(&self) -> Result<Option<String>, String> {
        self.0.read().map_err(|error| self.told(&error))
    }

    fn change(&self, change: &mut dyn FnMut(Option<String>) -> Option<String>) -> Result<(), String> {
        let held = self.0.hold().map_err(|error| self.told(&error))?;
        let before = self.0.read().map_err(|error| self.told(&error))?;
        match change(before) {
            Some(text) => held.write(&text).map_err(|error| self.told(&error)),
            None => Ok(()),
        }
    }
}
