//! Agent skills and plugins: folders with a SKILL.md, their front matter, and the texts they bring.
//!
//! [`SkillFiles::scan`] reads the skills below a list of [`SkillRoot`]s, [`SkillCatalog::resolve`] decides which of
//! two skills with the same name is used, [`listing`] writes the part of the system prompt that names them, and
//! [`Template`] fills in the arguments of a skill. [`plugin`] reads the folder of a plugin.
//!
//! Loading is lenient: a mistake in one file is a [`SkillProblem`] with its line, and affects only that skill.
//! Nothing here runs a command or decides about trust; the caller does both.

mod catalog;
mod front;
mod glob;
mod scan;
mod template;

pub mod plugin;

pub use self::catalog::{SkillCatalog, listing, listing_line};
pub use self::front::{MAX_DESCRIPTION, Skill, SkillOptions, is_valid_name, parse_skill};
pub use self::glob::glob_matches;
pub use self::scan::{SkillFiles, SkillOrigin, SkillProblem, SkillRoot};
pub use self::template::{Piece, SkillVariables, Template};
