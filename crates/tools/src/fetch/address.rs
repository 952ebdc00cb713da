//! Classifies addresses: which ones belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the reason an address is not public; `None` if it is.
pub fn objection(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => objection_v4(address),
        IpAddr::V6(address) => objection_v6(address),
    }
}

/// First address, length of the prefix, description.
#[rustfmt::skip]
const CLOSED_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0),        8, "this host"),
    (Ipv4Addr::new(10, 0, 0, 0),       8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0),    10, "carrier-internal"),
    (Ipv4Addr::new(127, 0, 0, 0),      8, "loopback"),
    // Azure virtual machines get their secrets from this address.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
    (Ipv4Addr::new(169, 254, 0, 0),   16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0),    12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0),     24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0),     24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0),   24, "reserved"),
    (Ipv4Addr::new(192, 168, 0, 0),   16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0),    15, "benchmark"),
    (Ipv4Addr::new(198, 51, 100, 0),  24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0),   24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0),      4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0),      4, "reserved"),
];

fn objection_v4(address: Ipv4Addr) -> Option<&'static str> {
    let within = |first: Ipv4Addr, prefix: u32| {
        let shift = 32 - prefix;
        first.to_bits() >> shift == address.to_bits() >> shift
    };
    let closed = CLOSED_V4
        .iter()
        .find(|(first, prefix, _)| within(*first, *prefix));
    closed.map(|(_, _, what)| *what)
}

/// Judges an IPv6 address. An IPv4 address inside it is judged as well: a gateway on the way may unwrap it.
fn objection_v6(address: Ipv6Addr) -> Option<&'static str> {
    let by_itself = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("this host"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        // ::a.b.c.d, ::ffff:a.b.c.d, ::ffff:0:a.b.c.d and 64:ff9b::a.b.c.d.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => None,
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        // All addresses in public use start with the bits 001.
        [0..=0x1fff, ..] | [0x4000..=0xffff, ..] => Some("reserved"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("documentation"),
        [0x2001, 2, 0, ..] => Some("benchmark"),
        [0x2001, 1..=0x01ff, ..] => Some("reserved"),
        _ => None,
    };
    by_itself.or_else(|| carried(address).into_iter().flatten().find_map(objection_v4))
}

/// Returns the IPv4 addresses inside an IPv6 address; at most two.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => [v4(high, low), None],
        // 6to4.
        [0x2002, high, low, ..] => [v4(high, low), None],
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            [v4(high, low), v4(!client_high, !client_low)]
        }
        // ISATAP.
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => [v4(high, low), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-2: every range outside the public internet is recognised, however its addresses are wrapped.
    #[test]
    fn addresses_are_judged() {
        #[rustfmt::skip]
        let cases = [
            ("this host",        "0.0.0.0 0.1.2.3 :: ::0.0.0.0"),
            ("loopback",         "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::127.0.0.1"),
            ("loopback",         "::ffff:0:127.0.0.1 2002:7f00:1:: 2001:0:0808:0808::80ff:fffe 2001:0:7f00:1::f7f7:f7f7"),
            ("loopback",         "2a00::5efe:7f00:1 2a00::200:5efe:7f00:1"),
            ("private",          "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255"),
            ("private",          "fc00:: fdff:ffff::1 fd00:ec2::254 ::ffff:10.0.0.1 2002:c0a8:0101::1"),
            ("link-local",       "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 febf::1 64:ff9b::a9fe:a9fe"),
            ("carrier-internal", "100.64.0.0 100.127.255.255 100.100.100.200"),
            ("cloud metadata",   "168.63.129.16"),
            ("multicast",        "224.0.0.1 239.255.255.255 ff02::1 ffff::"),
            ("reserved",         "192.0.0.1 192.88.99.1 240.0.0.1 255.255.255.255 2001:10::1 2001:1ff::1"),
            ("reserved",         "64:ff9b:1::1 100::1 4000::1 fec0::1 5f00::1 1::"),
            ("documentation",    "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1 3fff:fff::"),
            ("benchmark",        "198.18.0.0 198.19.255.255 2001:2::1"),
            ("",                 "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255"),
            ("",                 "128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255"),
            ("",                 "172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.0.0 198.20.0.0"),
            ("",                 "223.255.255.255 2606:4700::1111 2a00::1 2001:4860:4860::8888 2001:200::1 3ffe::1"),
            ("",                 "::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1 2001:0:808:808::f7f7:f7f7"),
        ];
        for (expected, addresses) in cases {
            for address in addresses.split(' ') {
                let found = objection(address.parse().unwrap()).unwrap_or_default();
                assert_eq!(found, expected, "{address}");
            }
        }
    }
}
