//! URLs of databases, and the connections they describe.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use windlass_core::log::LogError;

/// Time after which a server that does not answer counts as unreachable.
const CONNECT: Duration = Duration::from_secs(10);

/// Time after which a connection that carries nothing back counts as lost.
const SILENCE: Duration = Duration::from_secs(15);

/// Parsed URL of a database. Printed without the password.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) trust: Trust,
    shown: String,
}

/// Certificates of a server that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any: the connection is encrypted if the server can, and the server is not identified.
    Any,
    /// Those that the system's authorities signed for this host, or those of this file.
    Verified(Option<PathBuf>),
}

impl Address {
    /// Parses a URL. The error never contains a part of it that may be secret.
    pub(super) fn parse(url: &str) -> Result<Self, LogError> {
        let (url, options) = separate(url);
        let bad = |why: String| {
            LogError::Foreign(format!(
                "the store URL is not valid: {why}; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            ))
        };
        let mut config = Config::from_str(&url).map_err(|error| {
            bad(std::error::Error::source(&error).map_or_else(String::new, ToString::to_string))
        })?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host".to_owned()));
        }
        if config.get_user().is_none_or(str::is_empty) {
            return Err(bad("it names no user".to_owned()));
        }
        let mode = options.mode.as_deref().unwrap_or("prefer");
        let (mode, trust) = match mode {
            "disable" => (SslMode::Disable, Trust::Any),
            "prefer" | "allow" => (SslMode::Prefer, Trust::Any),
            "require" | "verify-ca" | "verify-full" => (SslMode::Require, Trust::Verified(options.root)),
            other => {
                return Err(bad(format!(
                    "`sslmode={other}` is not one of disable, prefer, require, verify-full"
                )));
            }
        };
        config.ssl_mode(mode);
        config.application_name("windlass");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // A server that vanished without a word is noticed after this time.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        config.keepalives_idle(SILENCE);
        // The schema of its own keeps the tables apart from those of other programs.
        let own = "-c search_path=windlass,public -c client_min_messages=warning";
        match config.get_options() {
            Some(options) => config.options(format!("{own} {options}")),
            None => config.options(own),
        };
        let shown = shown(&config);
        Ok(Self { config, trust, shown })
    }

    /// Returns the name of the user.
    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// Returns the name of the database.
    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn shown(config: &Config) -> String {
    let host = config
        .get_hosts()
        .first()
        .map_or_else(String::new, |host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
    let port = config.get_ports().first().filter(|port| **port != 5432);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let user = config.get_user().unwrap_or_default();
    let name = config.get_dbname().unwrap_or(user);
    format!("postgres://{user}@{host}{port}/{name}")
}

/// Options that the parser of the library does not know.
#[derive(Default)]
struct Options {
    mode: Option<String>,
    root: Option<PathBuf>,
}

/// Takes the options about TLS out of a URL.
fn separate(url: &str) -> (String, Options) {
    let mut options = Options::default();
    let Some((start, query)) = url.split_once('?') else {
        return (url.to_owned(), options);
    };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => options.mode = Some(mode.to_owned()),
            Some(("sslrootcert", file)) => options.root = Some(PathBuf::from(decoded(file))),
            _ => rest.push(pair),
        }
    }
    let url = match rest.is_empty() {
        true => start.to_owned(),
        false => format!("{start}?{}", rest.join("&")),
    };
    (url, options)
}

/// Decodes `%2F` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-1, SEC-5: the password of a URL is shown nowhere.
    #[test]
    fn passwords_are_not_shown() {
        let address =
            Address::parse("postgres://me:hunter2@db.example:6000/wind?sslmode=verify-full").unwrap();
        assert_eq!(address.to_string(), "postgres://me@db.example:6000/wind");
        assert!(!format!("{address:?}").contains("hunter2"));
        assert_eq!(address.trust, Trust::Verified(None));
        let socket =
            Address::parse("postgresql://me:hunter2@%2Frun%2Fpg/wind?sslrootcert=%2Fa.pem&sslmode=require");
        let socket = socket.unwrap();
        assert_eq!(socket.to_string(), "postgres://me@/run/pg/wind");
        assert_eq!(socket.trust, Trust::Verified(Some(PathBuf::from("/a.pem"))));
    }

    /// SES-1: a URL that is not valid is an error that says what is expected, without the URL.
    #[test]
    fn bad_urls_are_refused() {
        for (url, why) in [
            ("postgres://me:hunter2@host:port/db", "port"),
            ("postgres://:hunter2@host/db", "user"),
            ("postgres:///db?user=me&password=hunter2", "no host"),
            ("postgres://me:hunter2@host/db?sslmode=often", "sslmode=often"),
            ("postgres://me:hunter2@host/db?colour=red", "colour"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
            assert!(
                error.contains("postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
