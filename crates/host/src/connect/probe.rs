//! Connects to a server without sending anything.

use std::time::Duration;

use tokio::net::TcpStream;

/// Checks that something listens at the address. No request is sent, so no key leaves this machine.
///
/// # Errors
/// Fails with the reason if nothing answers.
pub async fn reach(base_url: &str) -> Result<(), String> {
    let (scheme, rest) = base_url.split_once("://").ok_or("not an address")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let default = if scheme == "https" { 443 } else { 80 };
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let target = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:{default}")
    };
    match tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(&target)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("{target}: {error}")),
        Err(_) => Err(format!("{target}: no answer within 5 s")),
    }
}
