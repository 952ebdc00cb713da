//! The carrier between servers in these tests: NATS.

use std::sync::OnceLock;

use windlass_testkit::NatsServer;

/// Returns the settings for it. Clusters share a NATS server: the names of their subjects differ.
pub(super) fn settings() -> String {
    static SHARED: OnceLock<NatsServer> = OnceLock::new();
    settings_of(SHARED.get_or_init(|| NatsServer::start(&[])))
}

/// Returns the settings for a NATS server.
pub(super) fn settings_of(nats: &NatsServer) -> String {
    carried_by(&nats.url(""))
}

/// Returns the settings for NATS at a URL.
pub(super) fn carried_by(url: &str) -> String {
    format!("\n[server]\ncluster_carrier = \"{url}\"\n")
}
