//! Distinct types for identifiers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Generates a new id that sorts by creation time.
            pub fn generate() -> Self {
                Self(uuid::Uuid::now_v7().to_string())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Id of a stored conversation.
    SessionId
);
id!(
    /// Id of a message in a session.
    MessageId
);
id!(
    /// Id of a tool call, as assigned by the provider. Providers repeat these: match calls and results by
    /// position.
    CallId
);

impl SessionId {
    /// Returns true if the id has the form of one that [`Self::generate`] returns: a UUID in lower case. Any
    /// other id comes from outside and may contain anything.
    pub fn is_uuid(&self) -> bool {
        let parsed = uuid::Uuid::try_parse(&self.0);
        parsed.is_ok_and(|id| id.hyphenated().to_string() == self.0)
    }
}
