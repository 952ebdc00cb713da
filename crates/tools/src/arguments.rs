//! Arguments as models really write them.

use serde::{Deserialize, Deserializer};

/// Takes `null` for an argument that was left out. Some models write every argument, and this for those they do not use.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
