//! Logins to MCP servers behind a URL, through the binary.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use windlass_sim::Reply;
use windlass_testkit::PATIENCE;

use super::mcp_http::{Site, call, exec};
use super::support::results;

/// MCP-7: a login finds the authorization server, registers, proves the code with PKCE, names the resource, and
/// stores the token for the user alone, under the authorization server and the server that it is for, also in a file of an
/// earlier version; a token that the server no longer accepts is renewed; a logout forgets it and no other one.
#[test]
fn a_login_is_kept_renewed_and_forgotten() {
    let site = Site::start();
    let replies = vec![
        call("secure", "echo", "in"),
        call("secure", "revoke", ""),
        call("secure", "echo", "renewed"),
        Reply::text("done"),
    ];
    let (sim, workspace) = site.session(&["secure"], "", replies);
    let browser = "\n[mcp.oauth]\nbrowser = [\"python3\", \"-c\", \"import sys, urllib.request; \
                   urllib.request.urlopen(sys.argv[1])\"]\n";
    let config = std::fs::read_to_string(workspace.config_file()).unwrap();
    workspace.config(&format!("{config}{browser}"));
    let say = |arguments: &[&str]| workspace.run(arguments).limit(PATIENCE).output();
    let before = say(&["mcp", "test"]);
    assert!(
        before
            .assert_code(1)
            .stdout
            .contains("run: windlass mcp login at-secure"),
        "{before}"
    );
    let login = say(&["mcp", "login", "at-secure"]);
    assert!(
        login.assert_code(0).stdout.contains("logged in to at-secure"),
        "{login}"
    );
    let tokens = workspace.home().join("data/mcp-tokens.json");
    let mode = std::fs::metadata(&tokens).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!login.stdout.contains("access-"), "{login}");
    let stored: Value = serde_json::from_slice(&std::fs::read(&tokens).unwrap()).unwrap();
    let (issuer, resource) = (site.url(""), site.url("secure"));
    let issuer = issuer.trim_end_matches('/');
    let credentials = &stored["issuers"][issuer][&resource];
    assert_eq!(credentials["issuer"], issuer, "{stored}");
    // As an earlier version wrote it, restored from a copy that others can read.
    let earlier = serde_json::json!({ resource: credentials, "https://other.example/mcp": credentials });
    std::fs::write(&tokens, earlier.to_string()).unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o644)).unwrap();

    exec(&workspace);
    assert_eq!(results(&sim), ["echo: in", "revoked", "echo: renewed"]);
    let renewals = |request: &&Value| {
        let body = request["body"].as_str().unwrap_or_default();
        request["path"] == "/token" && body.contains("grant_type=refresh_token")
    };
    assert_eq!(site.log().iter().filter(renewals).count(), 1, "{:?}", site.log());
    let tested = say(&["mcp", "test"]);
    assert!(tested.assert_code(0).stdout.contains("ready"), "{tested}");

    let logout = say(&["mcp", "logout", "at-secure"]);
    let forgot = format!("forgot the token for at-secure from {issuer}");
    assert!(logout.assert_code(0).stdout.contains(&forgot), "{logout}");
    let left: Value = serde_json::from_slice(&std::fs::read(&tokens).unwrap()).unwrap();
    assert!(
        left["issuers"][issuer]["https://other.example/mcp"].is_object(),
        "{left}"
    );
    let mode = std::fs::metadata(&tokens).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let after = say(&["mcp", "test"]);
    assert!(
        after.assert_code(1).stdout.contains("asks for a login"),
        "{after}"
    );
    let again = say(&["mcp", "logout", "at-secure"]);
    assert!(again.stdout.contains("there was no token"), "{again}");
}
