//! Programs of the network that talk to this machine only.

use super::options::{self, Grammar, Parsed};
use super::word::Word;

const CURL: Grammar = Grammar(
    "-s -S -f -i -I -v -L -k -g -G -4 -6 -N -O -J -# -X: -H: -d: -F: -o:> -w: -m: -u: -A: -b: -c:> -e: -r: --silent \
     --show-error --fail --fail-with-body --include --head --verbose --location --insecure --request: --header: --data: \
     --data-raw: --data-binary: --data-urlencode: --form: --output:> --write-out: --max-time: --connect-timeout: --retry: \
     --retry-delay: --retry-connrefused --retry-all-errors --retry-max-time: --user: --user-agent: --compressed --json: \
     --get --no-buffer --http1.1 --http2 --globoff --no-progress-meter --remote-name",
);
const WGET: Grammar = Grammar(
    "-q -S -v -d -O:> -t: -T: --quiet --output-document:> --spider --tries: --timeout: --server-response --header: \
     --post-data: --method: --body-data:",
);
const PING: Grammar = Grammar("-c: -i: -n -q -s: -t: -v -w: -W: -4 -6");
const NETCAT: Grammar = Grammar("-z -v -n -u -4 -6 -w: -q:");

/// Returns the arguments of a program that talks to a server, if that server can only be on this machine.
pub(super) fn read(program: &str, arguments: &[Word]) -> Option<Parsed> {
    let grammar = match program {
        "curl" => CURL,
        "wget" => WGET,
        "ping" => PING,
        "nc" | "ncat" | "netcat" => NETCAT,
        _ => return None,
    };
    let parsed = options::parse_all(grammar, arguments, false).ok()?;
    let mut servers = parsed.operands.iter();
    let is_local = match program {
        "curl" | "wget" => servers.len() > 0 && servers.all(|url| url.fixed().is_some_and(is_local_url)),
        // More operands are stations on the way to the last one.
        "ping" if servers.len() != 1 => false,
        _ => servers.next().and_then(Word::fixed).is_some_and(is_local_name),
    };
    is_local.then_some(parsed)
}

fn is_local_url(url: &str) -> bool {
    let rest = match url.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some(_) => return false,
        None => url,
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // A name before `@` is a user, and braces stand for several hosts.
    !host.contains(|c: char| !(c.is_ascii_alphanumeric() || ".:-[]".contains(c))) && is_local_name(name)
}

fn is_local_name(name: &str) -> bool {
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || name == "0.0.0.0" || address.is_ok_and(|address| address.is_loopback())
}
