//! Attempts to reach another machine from a network that has none, as the kernel counts them.

use std::fs;

/// The attempts before a command started.
pub(super) struct Unreachable {
    before: u64,
    /// True if names are looked up on this machine, where nothing answers.
    local_names: bool,
}

impl Unreachable {
    pub(super) fn now() -> Self {
        let names = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let local_names = names
            .lines()
            .filter_map(|line| line.strip_prefix("nameserver"))
            .any(|server| server.trim().starts_with("127."));
        Self {
            before: attempts(local_names),
            local_names,
        }
    }

    /// Returns true if there was an attempt since.
    pub(super) fn tried(&self) -> bool {
        attempts(self.local_names) > self.before
    }
}

fn attempts(local_names: bool) -> u64 {
    let four = fs::read_to_string("/proc/self/net/snmp").unwrap_or_default();
    let six = fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default();
    let unanswered = if local_names {
        counter(&four, "Udp:", "NoPorts")
    } else {
        0
    };
    counter(&four, "Ip:", "OutNoRoutes") + value(&six, "Ip6OutNoRoutes") + unanswered
}

/// Reads a counter from a table that has a line of names and a line of values for each protocol.
fn counter(table: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = table.lines().filter(|line| line.starts_with(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let place = names.split_whitespace().position(|word| word == name);
    let value = place.and_then(|place| values.split_whitespace().nth(place));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Reads a counter from a table of names and values.
fn value(table: &str, name: &str) -> u64 {
    let line = table
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found() {
        let four = "Ip: Forwarding OutNoRoutes\nIp: 1 7\nUdp: InDatagrams NoPorts\nUdp: 3 4\n";
        assert_eq!(counter(four, "Ip:", "OutNoRoutes"), 7);
        assert_eq!(counter(four, "Udp:", "NoPorts"), 4);
        assert_eq!(counter(four, "Tcp:", "NoPorts"), 0);
        assert_eq!(
            value("Ip6InReceives 1\nIp6OutNoRoutes \t 5\n", "Ip6OutNoRoutes"),
            5
        );
    }
}
