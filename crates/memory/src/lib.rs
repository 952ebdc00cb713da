//! Memory across sessions: what is kept, how it is found, and the local embedding model.
//!
//! - [`Memory`] searches: [`Memory::search`] ranks units, [`Memory::recall`] returns the fragment for a turn.
//! - [`catch_up`] reads what was said in sessions since the last time, and keeps it in [units](mod@unit).
//! - [`Embedder`] makes vectors; [`MiniLm`] is the local one. Without any, search goes by words.
//! - [`lesson`] recognizes corrections and preferences in the user's words.
//! - [`is_secret`] keeps passwords and keys out.
//!
//! Texts are kept word for word. A unit is ranked by its own words and by those of its neighbours, because an answer
//! is often next to the question that names its subject. The crate contains no SQL and starts no thread; its ports
//! are those of [`windlass_core::log`].

mod analysis;
mod catch_up;
mod embed;
mod entity;
mod fragment;
mod lesson;
mod period;
mod rank;
mod search;
mod secret;

mod tools;
pub mod unit;

pub use self::analysis::index_words;
pub use self::catch_up::{CatchUp, catch_up, embed_missing, units_of_session};
pub use self::embed::{
    EmbedError, EmbedPurpose, Embedder, MINILM_MODEL, MiniLm, WHEEL_NAME, WHEEL_SHA256, WHEEL_VERSION,
    convert_wheel,
};
pub use self::fragment::{Injection, date};
pub use self::lesson::lesson;
pub use self::search::{
    Hit, Memory, MemoryLimits, Scopes, SearchOutcome, VectorCache, is_user_scope, user_scope,
};
pub use self::secret::is_secret;
pub use self::tools::{MemoryAccess, SaveError, memory_tools};
