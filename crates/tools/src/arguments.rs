//! Argument parsing that tolerates common habits of models.

use serde::{Deserialize, Deserializer};

/// Treats `null` as a missing argument. Some models write every argument, with `null` for those they do not
/// use.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
