//! Handling of keys, pastes and other terminal input.

use crossterm::event::{Event as TermEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use windlass_api::{OnBusy, Pressed, Submission, UserReply, command_line, typed_command};
use windlass_core::permission::Mode;

use super::jobs::parts;
use super::{App, Edited, Effect, Older};
use crate::composer::{CompletionQuery, Did, Draft};
use crate::keys::KeyAction;
use crate::overlay::Pager;
use crate::request::Reaction;
use crate::theme::Tone;

/// Time within which a second press counts as a double press.
const TWICE_MS: u64 = 2_000;
/// Same for quitting while a turn runs: a command takes a while to type.
const LEAVE_MS: u64 = 10_000;
/// Number of rows that one step of the mouse wheel scrolls.
const WHEEL_ROWS: usize = 3;
/// Hint shown when a letter is not accepted as an answer.
const NOT_YET: &str = "ignored: read the request first";
/// Modes the mode key cycles through. Riskier modes must be chosen by name.
const MODES: [Mode; 4] = [Mode::Auto, Mode::Plan, Mode::Ask, Mode::Edits];
/// Extensions of image files.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

impl App {
    /// Handles terminal input.
    pub(crate) fn input(&mut self, input: TermEvent) {
        self.redraw.is_dirty = true;
        match input {
            TermEvent::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            TermEvent::Paste(text) => self.paste(&text),
            TermEvent::Resize(columns, rows) => self.view.size = (columns, rows),
            TermEvent::FocusGained => self.view.is_focused = true,
            TermEvent::FocusLost => self.view.is_focused = false,
            TermEvent::Mouse(mouse) => self.wheel(mouse.kind),
            TermEvent::Key(_) => {}
        }
    }

    fn key(&mut self, key: KeyEvent) {
        let now = self.now();
        let last_key_ms = std::mem::replace(&mut self.input.presses.key_ms, now);
        self.view.hint = None;
        // Two presses with another key in between are not a double press.
        if !self.is(&key, KeyAction::Cancel) {
            self.input.presses.cancel_ms = None;
        }
        if let Some(overlay) = &mut self.overlay {
            let step = overlay.handle(key, usize::from(self.view.size.1));
            return self.step(step);
        }
        // A permission request hides the composer, and with it a history search.
        if self.requests.front().is_some_and(|request| !request.takes_text()) {
            self.composer.end_search();
        }
        if self.composer.is_searching()
            && !self.is(&key, KeyAction::Cancel)
            && !self.is(&key, KeyAction::History)
        {
            self.write(key);
            return;
        }
        if self.asked(&key, now, last_key_ms)
            || self.menu_key(&key)
            || self.find_key(&key)
            || self.scroll_key(&key)
        {
            return;
        }
        // Some keys have a meaning in the text first: a line break after a backslash, vim modes and commands.
        let is_enter = key.code == KeyCode::Enter && key.modifiers.is_empty();
        let is_escape = key.code == KeyCode::Esc && self.composer.vim_mode().is_some();
        let is_vims = is_escape || self.composer.is_normal();
        if (is_enter || is_vims) && self.write(key) {
            return;
        }
        match self.input.keys.action(&key) {
            Some(action) => self.act(action),
            // If another key sends, enter inserts a line break.
            None if is_enter => drop(self.write(KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT))),
            None if is_vims => {}
            None => drop(self.write(key)),
        }
    }

    fn is(&self, key: &KeyEvent, action: KeyAction) -> bool {
        self.input.keys.action(key) == Some(action)
    }

    /// Passes a key to the composer. Returns true if the composer used it.
    fn write(&mut self, key: KeyEvent) -> bool {
        match self.composer.handle(key) {
            Did::Nothing => return false,
            Did::Moved => {}
            Did::Changed => self.written(),
        }
        true
    }

    /// Offers a key to the request on screen. Returns true if the key was handled.
    fn asked(&mut self, key: &KeyEvent, now: u64, last_key_ms: u64) -> bool {
        let is_empty = self.composer.is_empty();
        let is_send = self.is(key, KeyAction::Send);
        let Some(request) = self.requests.front_mut() else {
            return false;
        };
        let is_startling = request.is_startling(now, last_key_ms);
        if is_startling {
            if letter(key).is_some() {
                request.startle();
            }
            // Typing continues in the draft, but starts no new text and sends nothing.
            let begins = letter(key).is_some() && (is_empty || !request.interrupts());
            let is_ignored = begins || is_send || self.is(key, KeyAction::Queue);
            if is_ignored {
                self.view.hint = Some(NOT_YET.to_owned());
            }
            return is_ignored;
        }
        if request.takes_text() {
            self.put_draft_aside();
        }
        let is_empty = self.composer.is_empty();
        let Some(request) = self.requests.front_mut() else {
            return false;
        };
        if is_send && request.takes_text() {
            if !is_empty {
                let reply = request.answer(self.composer.take().text);
                let call = request.call().clone();
                self.reply(&call, reply);
            }
            return true;
        }
        match request.handle(key, is_empty, now) {
            Reaction::Option(option) => {
                let call = request.call().clone();
                self.reply(&call, UserReply::Text(option));
                true
            }
            Reaction::Pressed(Pressed::Ignored) if request.takes_text() => false,
            Reaction::Pressed(Pressed::Ignored) => {
                self.beside_a_request(key);
                true
            }
            Reaction::Pressed(pressed) => {
                self.pressed(pressed);
                true
            }
        }
    }

    /// Applies the effect of a key on the permission request.
    fn pressed(&mut self, pressed: Pressed) {
        let Some(request) = self.requests.front_mut() else {
            return;
        };
        self.redraw.is_dirty = true;
        match pressed {
            Pressed::Ignored => {}
            Pressed::Taken => self.view.hint = request.hint().map(str::to_owned),
            Pressed::Answered(answer) => {
                let call = request.call().clone();
                self.reply(&call, UserReply::Permission(answer));
            }
            Pressed::View => {
                request.viewed();
                let columns = usize::from(self.view.size.0);
                let lines = request.whole(columns, self.view.theme);
                self.overlay = Some(Box::new(Pager::new("Full request", lines)));
            }
            Pressed::Tell(text) => {
                self.put_draft_aside();
                self.composer.paste(&text);
                self.written();
            }
        }
    }

    /// Milliseconds until a letter that may have been an answer is one.
    pub(super) fn answer_due(&self) -> Option<u64> {
        let due = self.requests.front()?.due_ms()?;
        Some(due.saturating_sub(self.now()))
    }

    /// Answers with a letter that no other followed.
    pub(super) fn take_due_answer(&mut self) {
        let now = self.now();
        if let Some(request) = self.requests.front_mut() {
            let pressed = request.tick(now);
            if pressed != Pressed::Ignored {
                self.pressed(pressed);
            }
        }
    }

    /// Handles a key that does not answer the open permission request: nothing is sent, and nothing is typed
    /// out of sight.
    fn beside_a_request(&mut self, key: &KeyEvent) {
        match self.input.keys.action(key) {
            Some(KeyAction::Send | KeyAction::Queue | KeyAction::History) => {}
            Some(action) => self.act(action),
            None => drop(self.scroll_key(key)),
        }
    }

    fn reply(&mut self, call: &windlass_api::CallId, reply: UserReply) {
        self.jobs.reply(&self.session.info.id, call, reply);
        self.answered(call);
    }

    /// Offers a key to the completion menu. Returns true if the key was handled.
    fn menu_key(&mut self, key: &KeyEvent) -> bool {
        let Some(menu) = self.menu.as_mut().filter(|menu| menu.has_choices()) else {
            return false;
        };
        match key.code {
            KeyCode::Up => menu.up(),
            KeyCode::Down => menu.down(),
            KeyCode::Esc => {
                self.menu = None;
                self.caches.closed_menu = Some(self.composer.text().to_owned());
            }
            KeyCode::Tab => self.accept(),
            KeyCode::Enter if key.modifiers.is_empty() => match self.composer.completion_query() {
                // Argument completions are only suggestions: enter sends the text as written.
                Some(CompletionQuery::Command(line))
                    if line.contains(char::is_whitespace) && !menu.is_moved() =>
                {
                    self.act(KeyAction::Send);
                }
                Some(CompletionQuery::Command(_)) => {
                    self.accept();
                    if self.is_complete() {
                        self.act(KeyAction::Send);
                    }
                }
                _ => self.accept(),
            },
            _ => return false,
        }
        true
    }

    /// Inserts the selected completion.
    fn accept(&mut self) {
        let Some(menu) = self.menu.take() else { return };
        if let Some(choice) = menu.selected() {
            self.composer.complete(&choice.insert);
        }
        self.caches.closed_menu = Some(self.composer.text().to_owned());
    }

    /// True if the command in the composer needs no further arguments.
    fn is_complete(&self) -> bool {
        let Some(line) = command_line(self.composer.text().trim_end()) else {
            return false;
        };
        let found = self
            .caches
            .commands
            .iter()
            .find(|command| command.name.eq_ignore_ascii_case(line.name));
        let optional = |command: &windlass_api::CommandInfo| {
            command.arguments.is_empty() || command.arguments.starts_with('[')
        };
        !line.arguments.is_empty() || found.is_none_or(optional)
    }

    fn scroll_key(&mut self, key: &KeyEvent) -> bool {
        if !self.view.is_full {
            return false;
        }
        let page = usize::from(self.view.size.1).saturating_sub(8).max(1);
        let is_looking = self.composer.is_empty() && (self.view.unfolded || self.view.scroll > 0);
        match key.code {
            KeyCode::PageUp => self.scroll_up(page),
            KeyCode::PageDown => self.view.scroll = self.view.scroll.saturating_sub(page),
            // Terminals translate the mouse wheel to arrow keys.
            KeyCode::Up if is_looking => self.scroll_up(1),
            KeyCode::Down if is_looking => self.view.scroll = self.view.scroll.saturating_sub(1),
            _ => return false,
        }
        true
    }

    /// Scrolls by the mouse wheel, which is reported in full screen only.
    fn wheel(&mut self, kind: MouseEventKind) {
        let code = match kind {
            MouseEventKind::ScrollUp => KeyCode::Up,
            MouseEventKind::ScrollDown => KeyCode::Down,
            _ => return,
        };
        for _ in 0..WHEEL_ROWS {
            match (&mut self.overlay, code) {
                (Some(overlay), code) => {
                    let key = KeyEvent::new(code, KeyModifiers::NONE);
                    let step = overlay.handle(key, usize::from(self.view.size.1));
                    self.step(step);
                }
                (None, KeyCode::Up) => self.scroll_up(1),
                (None, _) => self.view.scroll = self.view.scroll.saturating_sub(1),
            }
        }
    }

    pub(super) fn scroll_up(&mut self, rows: usize) {
        self.view.scroll = self.view.scroll.saturating_add(rows);
        if let Older::Failed(_) = self.view.older {
            self.view.older = Older::Unread;
        }
    }

    fn act(&mut self, action: KeyAction) {
        match action {
            KeyAction::Send => self.send(OnBusy::Steer),
            // An answer is not a message.
            KeyAction::Queue if self.session.is_busy && !self.composer.has_aside() => {
                self.send(OnBusy::Queue);
            }
            KeyAction::Queue => {
                self.caches.closed_menu = None;
                self.offer();
            }
            KeyAction::Stop => self.stop(),
            KeyAction::Cancel => self.cancel(),
            KeyAction::Leave if self.composer.is_empty() => self.leave(self.input.keys.key(KeyAction::Leave)),
            KeyAction::Leave => drop(self.write(KeyEvent::new(KeyCode::Delete, KeyModifiers::NONE))),
            KeyAction::Mode => self.next_mode(),
            KeyAction::History => {
                self.composer.search();
                self.written();
            }
            KeyAction::Editor => {
                let text = self.composer.shown();
                self.effect(Effect::Edit {
                    text,
                    then: Edited::Draft,
                });
            }
            KeyAction::PasteImage => self.jobs.clipboard_image(),
            KeyAction::OpenPaste => {
                if self.composer.open_chip() {
                    self.written();
                } else {
                    self.view.hint = Some("no pasted text at the cursor".to_owned());
                }
            }
            KeyAction::TakeBack => {
                if let Some(message) = self.last_queued() {
                    self.jobs.take_back(&self.session.info.id, message);
                }
            }
            KeyAction::Transcript => self.toggle_transcript(),
            KeyAction::Redraw => self.effect(Effect::Redraw),
            KeyAction::Suspend => self.effect(Effect::Suspend),
            KeyAction::KeyBindings => self.show_keys(),
        }
    }

    /// Quits; while a turn runs, only if asked twice.
    pub(super) fn leave(&mut self, how: String) {
        let now = self.now();
        let last = self.input.presses.leave_ms.replace(now);
        let is_asked_twice = last.is_some_and(|last| now.saturating_sub(last) < LEAVE_MS);
        if !self.session.is_busy || is_asked_twice {
            return self.effect(Effect::Leave);
        }
        self.view.hint = Some(format!("a turn is running: {how} again stops it and quits"));
    }

    /// Toggles the full-screen transcript with everything unfolded.
    pub(super) fn toggle_transcript(&mut self) {
        self.view.unfolded = !self.view.unfolded;
        self.view.is_full = self.view.unfolded || self.view.stays_full;
        self.view.scroll = 0;
        self.view.find = None;
        self.transcript.forget_lines();
    }

    /// Switches between full screen and the terminal's own scrollback.
    pub(super) fn set_full(&mut self, is_full: bool) {
        self.view.stays_full = is_full;
        self.view.is_full = is_full;
        self.view.unfolded = false;
        self.view.scroll = 0;
        self.transcript.forget_lines();
    }

    /// Sends the draft.
    fn send(&mut self, on_busy: OnBusy) {
        if self.composer.is_empty() {
            return self.go_on();
        }
        if self.composer.text().trim_end() == "!" {
            self.view.hint = Some("! runs a shell command, as in !ls".to_owned());
            return;
        }
        if self.input.dropped > 0 {
            self.view.hint = Some("still reading an image".to_owned());
            return;
        }
        self.menu = None;
        self.caches.closed_menu = None;
        self.view.scroll = 0;
        // Two presses with a message sent in between are not a double press.
        self.input.presses.escape_ms = None;
        let draft = self.composer.take();
        let text = draft.text.trim();
        if text.is_empty() && draft.images.is_empty() {
            return;
        }
        // An API key typed after a provider's name must not end up in the history.
        if !(text.starts_with("/connect ") && text.split_whitespace().count() > 2) {
            self.jobs.ports.desktop.remember(&draft.remembered);
        }
        // A text that was pasted as a whole, or starts with a space, is not a command.
        let is_command = typed_command(&draft.shown).is_some();
        if let Some(line) = typed_command(draft.text.trim_end()).filter(|_| is_command) {
            self.run_command(&line);
        } else {
            self.submit(draft, on_busy);
        }
    }

    /// Sends the queued messages if no turn is running.
    fn go_on(&mut self) {
        if !self.session.is_busy && self.last_queued().is_some() {
            self.jobs.go_on(&self.session.info.id);
        }
    }

    pub(super) fn submit(&mut self, draft: Draft, on_busy: OnBusy) {
        let submission = Submission {
            session: self.session.info.id.clone(),
            parts: parts(&draft),
            on_busy,
            id: None,
        };
        self.jobs.submit(submission, draft);
    }

    /// Esc: stops the turn; pressed twice while idle: goes back to an earlier message.
    fn stop(&mut self) {
        let now = self.now();
        if self.session.is_busy {
            self.jobs.cancel(&self.session.info.id);
            return;
        }
        if !self.composer.is_empty() {
            return;
        }
        let last = self.input.presses.escape_ms.replace(now);
        if last.is_some_and(|last| now.saturating_sub(last) < TWICE_MS) {
            self.input.presses.escape_ms = None;
            self.show_messages();
        } else {
            let key = self.input.keys.key(KeyAction::Stop);
            self.view.hint = Some(format!("press {key} again to go back to an earlier message"));
        }
    }

    /// Ctrl+C: clears the draft, then stops the turn, then quits.
    fn cancel(&mut self) {
        let now = self.now();
        if self.composer.clear() {
            self.menu = None;
            return;
        }
        if self.session.is_busy {
            self.jobs.cancel(&self.session.info.id);
        }
        let last = self.input.presses.cancel_ms.replace(now);
        if last.is_some_and(|last| now.saturating_sub(last) < TWICE_MS) {
            self.effect(Effect::Leave);
        } else {
            let key = self.input.keys.key(KeyAction::Cancel);
            self.view.hint = Some(format!("press {key} again to quit"));
        }
    }

    fn next_mode(&mut self) {
        let now = &self.session.status.mode;
        let index = MODES.iter().position(|mode| mode.name() == now);
        let next = MODES[index.map_or(0, |index| (index + 1) % MODES.len())];
        let name = next.name();
        self.session
            .status
            .set_mode(name.to_owned(), self.session.is_busy);
        self.view.hint = Some(format!("{name}: {}", next.meaning()));
        self.jobs
            .quiet_command(&self.session.info.id, &format!("/mode {name}"));
    }

    fn paste(&mut self, text: &str) {
        if let Some(overlay) = &mut self.overlay {
            let step = overlay.paste(text);
            return self.step(step);
        }
        let (now, last_key_ms) = (self.now(), self.input.presses.key_ms);
        // What is pasted at a permission request is no answer: it tells the model what to do instead.
        let is_answer = self.requests.front_mut().is_some_and(|request| {
            !request.is_startling(now, last_key_ms) && (request.takes_text() || request.tell())
        });
        if is_answer {
            self.put_draft_aside();
        }
        // An answer is text only and cannot hold an image.
        match image_path(text).filter(|_| !self.composer.has_aside()) {
            Some(path) => {
                self.input.dropped += 1;
                self.jobs.dropped(text.to_owned(), path);
            }
            None => {
                self.composer.paste(text);
                self.written();
            }
        }
    }

    /// Updates the completion menu after the text changed.
    pub(super) fn written(&mut self) {
        self.redraw.is_dirty = true;
        self.menu = None;
        if self.caches.closed_menu.as_deref() != Some(self.composer.text()) {
            self.caches.closed_menu = None;
            self.offer();
        }
    }

    /// Shows completions for the current text.
    pub(super) fn offer(&mut self) {
        match self.composer.completion_query() {
            Some(CompletionQuery::Command(line)) => self.offer_commands(&line),
            Some(CompletionQuery::File(letters)) => self.offer_files(&letters),
            None => {}
        }
    }

    /// Takes the text from the user's editor. On error, the draft stays unchanged; a command for which there is no
    /// editor becomes the draft.
    pub(crate) fn edited(&mut self, then: &Edited, before: &str, text: Result<String, String>) {
        match (then, text) {
            (Edited::Draft, Ok(text)) => self.set_text(text.trim_end_matches('\n')),
            (Edited::Draft, Err(why)) => self.tell(Tone::Warn, &why),
            (Edited::Command(command), Ok(text)) => self.run_command(&format!("{command}\n{text}")),
            (Edited::Command(command), Err(why)) => {
                self.tell(Tone::Warn, &why);
                self.set_text(&format!("{command}\n{before}"));
            }
        }
    }
}

/// Returns the character a key types.
fn letter(key: &KeyEvent) -> Option<char> {
    let is_command = key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    match key.code {
        KeyCode::Char(letter) if !is_command => Some(letter),
        _ => None,
    }
}

/// Returns the path of an image file that was dropped on the terminal or pasted.
fn image_path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.lines().count() != 1 || text.len() > 4096 {
        return None;
    }
    let text = text.strip_prefix("file://").unwrap_or(text);
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    let path = match quoted('\'').or_else(|| quoted('"')) {
        Some(inner) => inner.to_owned(),
        None => text.replace("\\ ", " "),
    };
    let (_, extension) = path.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    (IMAGES.contains(&extension.as_str()) && (path.starts_with('/') || path.starts_with('~'))).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: an image dropped on the terminal arrives as its path, in one of several notations.
    #[test]
    fn dropped_images_are_known() {
        let cases = [
            ("/home/me/a.png", Some("/home/me/a.png")),
            ("'/home/me/a b.PNG'", Some("/home/me/a b.PNG")),
            ("/home/me/a\\ b.jpg ", Some("/home/me/a b.jpg")),
            ("file:///tmp/x.webp", Some("/tmp/x.webp")),
            ("/home/me/a.txt", None),
            ("look at /home/me/a.png", None),
            ("/a.png\n/b.png", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(image_path(text).as_deref(), expected, "{text:?}");
        }
    }
}
