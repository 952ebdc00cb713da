//! Reads YAML into a tree whose nodes know their line, for files that people write by hand.
//!
//! - [`Node::read`] parses a document. The parser limits nesting and aliases.
//! - The typed accessors of [`Node`], such as [`Node::text`], return the value or the words for what was
//!   expected: `true or false`, `a whole number`. The caller adds the file, the line and the key.
//! - [`key_hint`] and [`nearest`] suggest the name that was probably meant.
//!
//! ```
//! use windlass_yaml::Node;
//!
//! let node = Node::read("'yes'").unwrap();
//! assert_eq!(node.flag().unwrap_err(), "true or false");
//! assert_eq!(node.describe(), "`yes`");
//! ```

mod suggest;
mod tree;

pub use self::suggest::{key_hint, nearest};
pub use self::tree::{Data, Node, TableEntry, YamlError};
