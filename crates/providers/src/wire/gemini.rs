//! Gemini's own wire: `generateContent` and `streamGenerateContent`.

mod decode;
mod encode;

pub(crate) use self::decode::Decoder;
pub(crate) use self::encode::{head, item_calls, message, prefix, tools};
