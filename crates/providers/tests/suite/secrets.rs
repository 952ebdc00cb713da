//! No key is ever shown, and unusable settings are refused by name.

use windlass_core::provider::Provider;
use windlass_providers::key::Secret;
use windlass_providers::{ConfigError, HttpProvider, Transport, Wire};

use super::support::{Script, Server, config, hello, provider};

/// PROV-11: no error, debug output or event contains the key, even when the provider quotes it.
#[tokio::test]
async fn no_key_is_shown() {
    let body = r#"{"error":{"message":"bad key hunter2-hunter2, header other-secret-1, also sk-proj-0123456789abcdef"}}"#;
    let server = Server::start(vec![Script::status(401, "", body)]).await;
    let mut config = config(Wire::Anthropic, &server.url);
    config.headers = vec![("X-Auth-Token".to_owned(), "other-secret-1".to_owned())];
    config.key_hint = "the key hunter2-hunter2 is wrong".to_owned();
    let shown_config = format!("{config:?}");
    let provider = provider(config);
    let error = provider.send(hello()).await.unwrap_err();
    for text in [
        shown_config,
        format!("{provider:?}"),
        format!("{error} {error:?}"),
    ] {
        for secret in ["hunter2", "other-secret", "0123456789abcdef"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    assert!(error.message.starts_with("bad key [redacted]"), "{error}");
}

/// PROV-4: addresses and headers that cannot work are refused by name.
#[test]
fn bad_settings_are_named() {
    let make = |config| {
        HttpProvider::new(
            config,
            Transport::new(),
            std::sync::Arc::new(windlass_core::clock::SystemClock::default()),
        )
    };
    for url in ["localhost:8080", "ftp://host", "", "http://"] {
        let error = make(config(Wire::Chat, url)).unwrap_err();
        assert!(matches!(error, ConfigError::BadUrl { .. }), "{url}: {error}");
    }
    let mut bad = config(Wire::Chat, "http://host");
    bad.headers = vec![("bad header".to_owned(), "x".to_owned())];
    assert!(make(bad).unwrap_err().to_string().contains("`bad header`"));
    let mut bad = config(Wire::Chat, "http://host");
    bad.key = Some(Secret::new("a\nb"));
    assert_eq!(
        make(bad).unwrap_err(),
        ConfigError::BadKey {
            provider: "test".to_owned()
        }
    );
}
