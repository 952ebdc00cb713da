//! Assembles tool calls from fragments, matched by id or by index, whichever the server gets right.

use serde_json::value::RawValue;
use windlass_core::provider::ProviderEvent;

use super::chunk::Fragment;
use crate::wire::draft::{At, Draft};
use crate::wire::json::{Fields, ObjectWriter, is_object, object_text, tool_name};

/// Tool calls of one reply.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Slot>);

/// One call. It opens with its first argument, at the next call or at the end, because a name may come in pieces.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    at: Option<At>,
    early: String,
    rest: Fields,
}

impl Calls {
    pub(super) fn take(&mut self, fragment: Fragment, draft: &mut Draft, events: &mut Vec<ProviderEvent>) {
        let Fragment {
            index,
            id,
            function,
            rest,
        } = fragment;
        let id = id.unwrap_or_default();
        let name = function
            .as_ref()
            .and_then(|function| function.name.clone())
            .unwrap_or_default();
        let arguments = function.map(|function| function.arguments()).unwrap_or_default();
        let piece = Piece {
            id: &id,
            name: &name,
            arguments: &arguments,
        };
        let place = self.place(index, &piece, draft);
        let slot = match place.and_then(|place| self.0.get_mut(place)) {
            Some(slot) => slot,
            None => {
                self.open_all(draft, events);
                self.0.push(Slot {
                    index,
                    id: id.clone(),
                    ..Slot::default()
                });
                let Some(slot) = self.0.last_mut() else { return };
                slot
            }
        };
        if slot.id.is_empty() && slot.at.is_none() {
            slot.id = id;
        }
        if slot.at.is_none() {
            slot.add_name(name);
        }
        slot.rest.extend(rest);
        slot.early.push_str(&arguments);
        if !slot.early.is_empty() {
            slot.open(draft, events);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|slot| slot.name.is_empty())
    }

    fn open_all(&mut self, draft: &mut Draft, events: &mut Vec<ProviderEvent>) {
        for slot in &mut self.0 {
            slot.open(draft, events);
        }
    }

    /// Ends all calls. A call that never got a name cannot be answered, so it is dropped with a notice.
    pub(super) fn close(&mut self, draft: &mut Draft, events: &mut Vec<ProviderEvent>) {
        self.open_all(draft, events);
        for slot in &self.0 {
            match slot.at {
                Some(at) => draft.close(at, events),
                None => events.push(ProviderEvent::Warning(
                    "dropped a tool call without a name".to_owned(),
                )),
            }
        }
    }

    /// Returns the calls as they go back to the provider.
    pub(super) fn items(&self, draft: &Draft) -> Vec<Box<RawValue>> {
        let items = self.0.iter().filter_map(|slot| {
            let at = slot.at?;
            let function = ObjectWriter::new()
                .field("name", tool_name(&slot.name).as_ref())
                .field("arguments", object_text(draft.text(at)).as_ref())
                .finish()?;
            ObjectWriter::new()
                .field("id", draft.call_id(at))
                .field("type", "function")
                .field("function", &function)
                .fields(&slot.rest, &["id", "type", "function", "index"])
                .finish()
        });
        items.collect()
    }

    /// Returns the index of the call a fragment belongs to, or `None` if it starts a new one.
    fn place(&self, index: Option<u64>, fragment: &Piece<'_>, draft: &Draft) -> Option<usize> {
        let known = |slot: &Slot| !fragment.id.is_empty() && slot.id == fragment.id && slot.same_index(index);
        let by_id = self.0.iter().rposition(known);
        let place = match index {
            _ if by_id.is_some() => by_id?,
            Some(_) => self.0.iter().rposition(|slot| slot.index == index)?,
            None => self.0.len().checked_sub(1)?,
        };
        let slot = self.0.get(place)?;
        let new_id = !fragment.id.is_empty() && by_id.is_none();
        // A name starts a new call, unless the arguments of the previous call are still incomplete: then the
        // server is repeating the name, and sometimes a new id, with every fragment.
        let may_begin = !fragment.name.is_empty() && !slot.name.is_empty();
        let begins = may_begin
            && match slot.progress(draft) {
                Progress::Inside => false,
                Progress::Empty => new_id || (by_id.is_none() && index.is_none()),
                Progress::Whole => new_id || index.is_none() || !fragment.arguments.is_empty(),
            };
        (!begins).then_some(place)
    }
}

/// Contents of a fragment.
struct Piece<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

/// Completeness of a call's arguments.
enum Progress {
    Empty,
    Inside,
    Whole,
}

impl Slot {
    /// Adds a piece of the name. Some servers repeat the name in every fragment, or send all of it so far.
    fn add_name(&mut self, piece: String) {
        match piece.starts_with(&self.name) {
            true => self.name = piece,
            false => self.name.push_str(&piece),
        }
    }

    /// Opens the call if its name is known, and passes on the arguments that are known.
    fn open(&mut self, draft: &mut Draft, events: &mut Vec<ProviderEvent>) {
        if self.at.is_none() && !self.name.is_empty() {
            self.at = Some(draft.open_call(&self.id, &self.name, events));
        }
        if let Some(at) = self.at {
            draft.extend(at, &std::mem::take(&mut self.early), events);
        }
    }

    fn progress(&self, draft: &Draft) -> Progress {
        match self.at.map_or(self.early.as_str(), |at| draft.text(at)) {
            "" => Progress::Empty,
            text if is_object(text) => Progress::Whole,
            _ => Progress::Inside,
        }
    }

    fn same_index(&self, index: Option<u64>) -> bool {
        index.is_none() || self.index.is_none() || self.index == index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;
    use crate::wire::ids::CallIds;

    /// MSG-4, MSG-7: fields that a vendor adds to a call, and arguments sent as an object, keep every byte.
    #[test]
    fn calls_keep_their_form() {
        let extra = r#"{"google": {"thought_signature":"\u00e9","n":1.10}}"#;
        let arguments = r#"{"a" : 1.10, "b":"\udc41"}"#;
        let fragment = format!(
            r#"{{"id":"c1","function":{{"name":"f","arguments":{arguments}}},"extra_content":{extra}}}"#
        );
        let mut draft = Draft::new(
            Wire::Chat,
            "p",
            CallIds::new(Default::default(), Wire::Chat, false),
        );
        let mut calls = Calls::default();
        calls.take(
            serde_json::from_str(&fragment).expect("a fragment"),
            &mut draft,
            &mut Vec::new(),
        );
        let item = calls.items(&draft).remove(0);
        assert!(item.get().contains(extra), "{item}");
        assert!(item.get().contains(r#"\"_raw\":"#), "{item}");
        let completion = draft.complete(Some(windlass_core::provider::StopReason::ToolUse), Vec::new());
        assert!(
            matches!(completion.parts.as_slice(), [windlass_core::message::Part::ToolCall(call)] if call.input == arguments)
        );
    }
}
