use super::*;

/// TOOL-2, SAFE-6: a host has one spelling, whatever the URL looks like.
#[test]
fn hosts_have_one_spelling() {
    let cases = [
        ("https://docs.rs/htmd", "docs.rs"),
        ("  HTTPS://Docs.RS.:443/htmd#top ", "docs.rs"),
        ("https://b\u{fc}cher.example/", "xn--bcher-kva.example"),
        ("https://docs\u{3002}rs/", "docs.rs"),
        ("http://d%6fcs.rs/", "docs.rs"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://[::1]:8080/", "::1"),
        ("http://[0:0::ffff:7f00:1]/", "::ffff:7f00:1"),
        ("http://docs.rs\\@evil.example/", "docs.rs"),
        ("http:docs.rs/a", "docs.rs"),
        ("http://LOCALHOST./", "localhost"),
    ];
    for (text, host) in cases {
        let target = Target::parse(text).unwrap_or_else(|error| panic!("{text} {error}"));
        assert_eq!(target.host(), host, "{text}");
        let sent = target.url().host_str().unwrap();
        assert_eq!(
            sent.trim_matches(['[', ']']),
            host,
            "{text}: what is judged is what is asked"
        );
        assert_eq!(
            target.address().is_some(),
            target.url().domain().is_none(),
            "{text}"
        );
    }
}

/// TOOL-1: the error for an invalid URL says what is wrong and what is expected.
#[test]
fn wrong_urls_are_explained() {
    let long = format!("https://docs.rs/{}", "a".repeat(MAX_CHARS));
    let cases = [
        (" ", "is empty; write a full URL, as in https://example.com/page"),
        (
            "docs.rs/htmd",
            "has no scheme; write the full URL, as in https://docs.rs/htmd",
        ),
        (
            "//docs.rs/htmd",
            "has no scheme; write the full URL, as in https://docs.rs/htmd",
        ),
        (
            "file:///etc/passwd",
            "is a file: URL; only http: and https: can be fetched",
        ),
        (
            "ftp://docs.rs/",
            "is a ftp: URL; only http: and https: can be fetched",
        ),
        (
            "https://user@docs.rs/",
            "contains a user name or password; leave out the part before the @",
        ),
        (
            "https://:pass@docs.rs/",
            "contains a user name or password; leave out the part before the @",
        ),
        (
            "https://docs..rs/",
            "is not a valid URL (empty part in the host); write it as in https://example.com/page",
        ),
        (
            "https://docs.rs../",
            "is not a valid URL (empty part in the host); write it as in https://example.com/page",
        ),
        (
            "https://docs.rs%00.evil.example/",
            "is not a valid URL (invalid international domain name); write it as in https://example.com/page",
        ),
        (
            "https://",
            "is not a valid URL (empty host); write it as in https://example.com/page",
        ),
        (&long, "is longer than 8000 characters"),
    ];
    for (text, expected) in cases {
        let found = Target::parse(text).unwrap_err().to_string();
        assert_eq!(found, expected, "{text}");
    }
}

/// TOOL-2: a redirect stays on its site and never loses encryption; other hosts are subject to their own
/// rules.
#[test]
fn redirects_are_sorted() {
    let cases = [
        ("https://a.example/x", "/y", "follow https://a.example/y"),
        (
            "http://a.example/x",
            "https://a.example/",
            "follow https://a.example/",
        ),
        (
            "https://a.example/x",
            "https://www.a.example/",
            "follow https://www.a.example/",
        ),
        (
            "https://www.a.example/x",
            "//A.example./",
            "follow https://a.example/",
        ),
        (
            "http://a.example/",
            "http://a.example:81/",
            "follow http://a.example:81/",
        ),
        (
            "https://a.example/x",
            "http://a.example/",
            "downgrade http://a.example/",
        ),
        (
            "https://a.example/x",
            "https://b.a.example/",
            "elsewhere https://b.a.example/",
        ),
        (
            "https://a.example/x",
            "//b.example/",
            "elsewhere https://b.example/",
        ),
        (
            "https://a.example/x",
            "http://127.1/",
            "elsewhere http://127.0.0.1/",
        ),
        (
            "https://a.example/x",
            "https://a.example.evil.example/",
            "elsewhere https://a.example.evil.example/",
        ),
        ("https://a.example/x", "file:///etc/passwd", "error"),
        ("https://a.example/x", "https://u:p@a.example/", "error"),
    ];
    for (from, location, expected) in cases {
        let found = match Target::parse(from).unwrap().redirect(location) {
            Ok(Redirect::Follow(target)) => format!("follow {}", target.url()),
            Ok(Redirect::Downgrade(target)) => format!("downgrade {}", target.url()),
            Ok(Redirect::Elsewhere(target)) => format!("elsewhere {}", target.url()),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(found, expected, "{from} {location}");
    }
}
