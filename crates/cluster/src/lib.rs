//! Several servers over one store.
//!
//! The store keeps everything that must not be lost; this crate decides who works in which session, and passes on what a
//! client of one server wants from a session of another.
//!
//! - [`Member`] is this server: it renews its lease, takes over sessions of lost servers, empties the inbox, and lets go of
//!   everything when its own deadline has passed.
//! - [`ClusterBackend`] is the backend that front ends of this server use: it sends a request to the local service, to
//!   the durable inbox, or to the owner of the session.
//! - [`ClusterWire`] carries live events and questions between servers; [`DirectWire`] does so over HTTP, [`NatsWire`]
//!   over NATS.
//! - [`move_session`] gives a session another place, where its folder is rebuilt.
//! - [`Term`] is the arithmetic of leases, as plain values.
//!
//! `docs/cluster.md` describes the guarantees.

mod backend;
mod boot_time;
mod direct;
mod guard;
mod lines;
mod member;
mod mirror;
mod moving;
mod nats;
mod port;
mod seal;
mod state;
mod term;
mod wire;

pub use self::backend::ClusterBackend;
pub use self::direct::DirectWire;
pub use self::member::Member;
pub use self::moving::{MoveOrder, MovePorts, move_session};
pub use self::nats::{NatsConfig, NatsError, NatsWire};
pub use self::port::bind;
pub use self::state::{ClusterConfig, ClusterPorts};
pub use self::term::{Standing, Term};
pub use self::wire::{ClusterWire, OwnerQuery, OwnerQueryKind, WireError, WireHandler};
