//! A bare HTTP client: the library Windlass uses, configured as in Windlass, and nothing else.

use anyhow::{Context, Result, bail};
use reqwest::Client;
use reqwest::redirect::Policy;

use crate::floor::ClientOptions;
use crate::record;

/// Sends the first recorded request and reads the reply to its end.
pub(crate) fn send_once(options: &ClientOptions) -> Result<()> {
    let requests = record::read(&std::fs::read(&options.requests)?)?;
    let request = requests.first().context("nothing was recorded")?;
    let mut body = Vec::new();
    request.restore(&mut body);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // A client cannot be built without a TLS implementation, even if it is not used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .tls_certs_only([])
            .no_proxy()
            .build()?;
        let post = client.post(format!("http://127.0.0.1:{}/v1/messages", options.port));
        let post = post
            .header("content-type", "application/json")
            .header("x-api-key", "bench");
        let response = post
            .header("anthropic-version", "2023-06-01")
            .body(body)
            .send()
            .await?;
        if !response.status().is_success() {
            bail!("the server returned {}", response.status());
        }
        response.bytes().await?;
        Ok(())
    })
}
