//! OpenAI Chat Completions, and the many servers that imitate it.

mod assemble;
mod chunk;
mod decode;
mod details;
mod encode;

pub(crate) use self::decode::Decoder;
pub(crate) use self::encode::{head, item_calls, message, prefix, tools};
