//! Model providers for Windlass: wire formats, one HTTP transport, retries, presets, the model registry.
//!
//! The crate separates three things. A **wire** is a pure format: [`wire::Encoder`] turns a request into
//! bytes, [`wire::ReplyDecoder`] turns the bytes of a response into events, and neither does any IO. The
//! **transport** moves bytes over HTTP and turns failures into a
//! [`ProviderError`](windlass_core::provider::ProviderError). A **preset** is a row of a table: the vendor's
//! address, its wire and its quirks.
//!
//! The types to know:
//!
//! - [`HttpProvider`], the [`Provider`](windlass_core::provider::Provider) built from the three.
//! - [`ProviderConfig`], its configuration; [`preset::Preset`] fills in most of it.
//! - [`Transport`], the connections that all providers share.
//! - [`key::Secret`], a key that cannot be printed.
//! - [`registry`], the data about models.
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
//! The crate does not read the environment or files (the caller passes keys and addresses), does not repair
//! histories (a request is valid before it gets here), and keeps no state between requests except connections
//! and encoded bytes.

#[doc(hidden)]
pub mod embeddings;
mod failure;
pub mod fuzzing;
pub mod key;
pub mod preset;
mod provider;
mod recorded_order;
pub mod registry;
mod relay;
pub mod retry;
pub mod sse;
pub mod tokens;
pub mod transport;
mod webhook;
pub mod wire;

pub use self::provider::{ConfigError, HttpProvider, ProviderConfig};
pub use self::recorded_order::{NextRecorded, RecordedOrder};
pub use self::relay::{Relay, RelayOrder};
pub use self::retry::RetryPolicy;
pub use self::transport::{Transport, TransportLimits, install_tls};
pub use self::webhook::{
    RefusedWebhook, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, WebhookGuard, post_webhook, sign,
};
pub use self::wire::{Effort, Quirks, Wire};
