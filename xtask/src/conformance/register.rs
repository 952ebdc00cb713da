//! Reads and checks the list of requirements.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::Deserialize;

/// Maximum length of a title in characters. A title is a reminder, not the requirement itself.
const TITLE_LENGTH: usize = 70;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Register {
    #[serde(rename = "area")]
    pub(crate) areas: Vec<Area>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Area {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) requirements: Vec<Requirement>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) title: String,
    /// Scenario numbers for the same requirement.
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// Line of the entry in the register.
    #[serde(skip)]
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Done,
    Planned,
}

impl Register {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut register: Self = toml_edit::de::from_str(text)?;
        let mut seen = BTreeSet::new();
        for area in &mut register.areas {
            for requirement in &mut area.requirements {
                let entry = format!("id = \"{}\"", requirement.id);
                requirement.line = text
                    .lines()
                    .position(|line| line.contains(&entry))
                    .unwrap_or_default()
                    + 1;
                requirement.check(&area.name)?;
                if !seen.insert(requirement.id.clone()) {
                    bail!("{} is listed twice", requirement.id);
                }
            }
        }
        Ok(register)
    }

    pub(crate) fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.areas.iter().flat_map(|area| &area.requirements)
    }

    pub(crate) fn requirement(&self, id: &str) -> Option<&Requirement> {
        self.requirements().find(|requirement| requirement.id == id)
    }

    /// Returns the ids that a word in a comment refers to: the word itself if it starts with an area, or
    /// every requirement with this alias.
    pub(crate) fn ids(&self, word: &str) -> Vec<String> {
        let is_id = word.split_once('-').is_some_and(|(area, number)| {
            self.areas.iter().any(|known| known.name == area) && number.parse::<u32>().is_ok()
        });
        if is_id {
            return vec![word.to_owned()];
        }
        let known_as = |requirement: &&Requirement| requirement.aliases.iter().any(|alias| alias == word);
        self.requirements()
            .filter(known_as)
            .map(|requirement| requirement.id.clone())
            .collect()
    }
}

impl Requirement {
    fn check(&self, area: &str) -> Result<()> {
        let number = self.id.strip_prefix(area).and_then(|rest| rest.strip_prefix('-'));
        if number.and_then(|number| number.parse::<u32>().ok()).is_none() {
            bail!("{} is not an id of the area {area}", self.id);
        }
        if self.title.is_empty() || self.title.chars().count() > TITLE_LENGTH {
            bail!("the title of {} needs 1 to {TITLE_LENGTH} characters", self.id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(requirements: &str) -> Result<Register> {
        Register::parse(&format!(
            "[[area]]\nname = \"LOOP\"\ntitle = \"loop\"\nrequirements = [\n{requirements}]\n"
        ))
    }

    #[test]
    fn words_stand_for_ids() {
        let register = register(
            "{ id = \"LOOP-3\", state = \"done\", title = \"t\", aliases = [\"S5.2\", \"S5.6\"] },\n",
        )
        .expect("the fixture is a register");
        assert_eq!(register.ids("LOOP-3"), ["LOOP-3"]);
        assert_eq!(
            register.ids("LOOP-99"),
            ["LOOP-99"],
            "known area: a typing error to report"
        );
        assert_eq!(register.ids("S5.6"), ["LOOP-3"]);
        assert_eq!(register.ids("UTF-8"), [""; 0]);
    }

    #[test]
    fn entries_are_checked() {
        let entry = "{ id = \"LOOP-1\", state = \"done\", title = \"t\" },\n";
        assert!(register(entry).is_ok());
        assert!(register(&entry.repeat(2)).is_err(), "twice");
        assert!(register(&entry.replace("LOOP-1", "EVT-1")).is_err(), "other area");
        assert!(register(&entry.replace("\"t\"", "\"\"")).is_err(), "no title");
        assert!(
            register(&entry.replace("done", "finished")).is_err(),
            "unknown state"
        );
    }
}
