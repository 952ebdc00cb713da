//! Anthropic Messages.

mod decode;
mod encode;

pub(crate) use self::decode::Decoder;
pub(crate) use self::encode::{
    MARKER, breakpoints, head, item_calls, message, prefix, put_marked, tools, without_trailing_blank,
};
