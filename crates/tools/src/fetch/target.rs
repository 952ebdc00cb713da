//! Parses URLs and classifies redirects. Pure.

use std::net::IpAddr;

use reqwest::Url;

const MAX_CHARS: usize = 8000;

/// A URL that may be requested, judging by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    url: Url,
    /// Lower-case ASCII, without port, brackets and trailing dot. Rules match this.
    host: String,
}

/// Reason a text is not a valid target. Reads as "`url` …".
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TargetError {
    #[error("is empty; write a full URL, as in https://example.com/page")]
    Empty,
    #[error("is longer than {MAX_CHARS} characters")]
    TooLong,
    #[error("has no scheme; write the full URL, as in https://{0}")]
    Relative(String),
    #[error("is not a valid URL ({0}); write it as in https://example.com/page")]
    Malformed(String),
    #[error("is a {0}: URL; only http: and https: can be fetched")]
    Scheme(String),
    #[error("contains a user name or password; leave out the part before the @")]
    Credentials,
}

/// Classification of a redirect.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The same site: follow.
    Follow(Target),
    /// The same site without encryption.
    Downgrade(Target),
    /// Another host, which is subject to its own rules.
    Elsewhere(Target),
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if text.len() > MAX_CHARS {
            return Err(TargetError::TooLong);
        }
        let url = Url::parse(text).map_err(|error| {
            // The type of the error is not accessible, so its meaning is determined by parsing again.
            let full = format!("https://{}", text.trim_start_matches('/'));
            if !text.contains(':') && Url::parse(&full).is_ok() {
                TargetError::Relative(text.trim_start_matches('/').to_owned())
            } else {
                TargetError::Malformed(error.to_string())
            }
        })?;
        Self::new(url)
    }

    fn new(mut url: Url) -> Result<Self, TargetError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(TargetError::Scheme(url.scheme().to_owned()));
        }
        if url.as_str().len() > MAX_CHARS {
            return Err(TargetError::TooLong);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        // `example.com.` and `example.com` are one host, so they get one spelling before they are judged.
        if let Some(name) = url.domain().and_then(|name| name.strip_suffix('.')) {
            let name = name.to_owned();
            url.set_host(Some(&name))
                .map_err(|error| TargetError::Malformed(error.to_string()))?;
        }
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if url.domain().is_some() && host.split('.').any(str::is_empty) {
            return Err(TargetError::Malformed("empty part in the host".to_owned()));
        }
        url.set_fragment(None);
        Ok(Self { url, host })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the address, if the host is one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Classifies a redirect to `location`.
    pub(super) fn redirect(&self, location: &str) -> Result<Redirect, TargetError> {
        let url = self.url.join(location.trim());
        let next = Self::new(url.map_err(|error| TargetError::Malformed(error.to_string()))?)?;
        let site = |target: &Self| {
            target
                .host
                .strip_prefix("www.")
                .unwrap_or(&target.host)
                .to_owned()
        };
        if site(self) != site(&next) {
            return Ok(Redirect::Elsewhere(next));
        }
        if self.is_encrypted() && !next.is_encrypted() {
            return Ok(Redirect::Downgrade(next));
        }
        Ok(Redirect::Follow(next))
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
