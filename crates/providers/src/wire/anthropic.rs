//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use self::decode::Decoder;
#[cfg(test)]
pub(crate) use self::encode::MARKER;
pub(crate) use self::encode::{
    breakpoints, head, item_calls, message, prefix, put_marked, tools, without_trailing_blank,
};
