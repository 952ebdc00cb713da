//! Model providers for Windlass: wire formats, one HTTP transport, retries, presets, the model registry.
//!
//! Three things are kept apart. A **wire** is a pure format: [`wire::Encoder`] turns a request into bytes,
//! [`wire::ReplyDecoder`] turns the bytes of an answer into events, and neither knows a network. The
//! **transport** moves bytes over HTTP and turns what goes wrong into a
//! [`ProviderError`](windlass_core::provider::ProviderError). A **preset** is a row of a table: where a
//! vendor is, which wire it speaks and what it does differently.
//!
//! The types to know:
//!
//! - [`HttpProvider`], the [`Provider`](windlass_core::provider::Provider) made of the three.
//! - [`ProviderConfig`], what makes one; [`preset::Preset`] fills most of it.
//! - [`Transport`], the connections all providers share.
//! - [`key::Secret`], a key that cannot be printed.
//! - [`registry`], what is known about models.
//!
//! ```
//! use std::sync::Arc;
//!
//! use windlass_core::clock::SystemClock;
//! use windlass_core::provider::Provider;
//! use windlass_providers::key::Secret;
//! use windlass_providers::preset::preset;
//! use windlass_providers::{HttpProvider, ProviderConfig, Transport, registry};
//!
//! let vendor = preset("anthropic").ok_or("no such preset")?;
//! let config = ProviderConfig {
//!     name: vendor.name.clone(),
//!     wire: vendor.wire,
//!     base_url: vendor.base_url.clone(),
//!     key: Some(Secret::new("the-key")),
//!     key_hint: vendor.key_hint(),
//!     headers: Vec::new(),
//!     quirks: vendor.quirks,
//!     model: registry::lookup(&vendor.default_model, &[]),
//!     reasoning: None,
//!     limits: Default::default(),
//!     retry: Default::default(),
//! };
//! let provider = HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default()))?;
//! assert_eq!(provider.name(), "anthropic");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does not do: it reads no environment and no file (the caller hands it keys and addresses), it
//! repairs no history (a request is valid before it gets here), and it keeps no state between requests but
//! connections and encoded bytes.

mod failure;
#[doc(hidden)]
pub mod fuzzing;
pub mod key;
pub mod preset;
mod provider;
pub mod registry;
pub mod retry;
pub mod sse;
pub mod tokens;
pub mod transport;
pub mod wire;

pub use self::provider::{ConfigError, HttpProvider, ProviderConfig};
pub use self::retry::RetryPolicy;
pub use self::transport::{Transport, TransportLimits, install_tls};
pub use self::wire::{Effort, Quirks, Wire};
