use windlass_core::tool::Category;

use super::*;
use crate::{Blocklist, SandboxFacts, analyse, analyse_in};

/// SAFE-4: the access that a command plainly needs is known before it runs, also behind wrappers and in
/// lists.
#[test]
fn needs_are_read_from_the_command() {
    let nothing = Escalation::default();
    let network = Escalation {
        network: true,
        outside: false,
        protected: false,
    };
    let both = Escalation {
        network: true,
        outside: true,
        protected: false,
    };
    let cases = [
        ("ls -la", nothing),
        ("git status && git log --grep=pull", nothing),
        ("cargo build && npm test", nothing),
        ("curl https://example.org", network),
        ("make; git -C sub pull --rebase", network),
        ("env A=b timeout 5 ssh host", network),
        ("pip install requests", both),
        ("npm install -g x", both),
        ("npm install", network),
        ("npm test && npm run install", nothing),
        ("npm --prefix web ci", network),
        ("npm ls", nothing),
        ("npx create-app x", network),
        ("yarn", network),
        ("yarn test", nothing),
        ("pnpm add -g x", both),
        ("cargo add serde", network),
        ("cargo +nightly install x", both),
        ("cargo --version; go version", nothing),
        ("go get x", network),
        ("go mod download", network),
        ("go mod edit", nothing),
        ("uv sync", network),
        ("uv pip list", nothing),
        ("rustup toolchain list", nothing),
        ("rustup target list", nothing),
        ("uv run pytest", nothing),
        ("bundle", network),
        ("bundle exec rake", nothing),
        ("python3 -m pip install x", both),
        ("python3 -m pytest", nothing),
        ("cd web && env CI=1 timeout 60 npm ci", network),
        ("apt-get install x", both),
        ("git submodule status && git stash push -m pull", nothing),
        (
            "git commit -m push; git checkout fetch; git -C sub log -- clone",
            nothing,
        ),
        ("git submodule --quiet update --init", network),
        ("git -c a.b=c --no-pager fetch", network),
        ("curl --version; ssh -V; rsync --version; wget --help", nothing),
        ("rsync -a src/ dst/", nothing),
        ("rsync -a src/ host:dst", network),
        ("rsync -a rsync://host/x .", network),
        ("curl http://localhost:8080", network),
    ];
    for (command, needs) in cases {
        assert_eq!(
            analyse(command, &Blocklist::default()).needs(),
            needs,
            "{command}"
        );
    }
    let own = SandboxFacts {
        holds: &|_| false,
        own_network: true,
    };
    for (command, needs) in [
        ("curl -s http://localhost:3000/health", nothing),
        (
            "curl -sX POST -d @f -H 'a: b' 127.0.0.1:8080 'http://[::1]/x'",
            nothing,
        ),
        ("wget -qO- http://localhost", nothing),
        ("nc -z localhost 8080", nothing),
        ("curl", network),
        ("curl http://localhost.example.org", network),
        ("curl http://localhost@example.org", network),
        ("curl 'http://{localhost,example.org}/'", network),
        ("curl 'http://localhost\\@example.org'", network),
        ("curl localhost example.org", network),
        ("curl -K x localhost", network),
        ("curl -x example.org localhost", network),
        ("curl file:///etc/hosts", network),
        ("curl \"http://localhost$x\"", network),
        ("nc example.org 80 localhost", network),
        ("nc -e sh localhost 80", network),
    ] {
        let analysis = analyse_in(command, &Blocklist::default(), &own);
        assert_eq!(analysis.needs(), needs, "{command}");
        let expected = if needs == nothing {
            Category::Write
        } else {
            Category::Admin
        };
        assert_eq!(analysis.category, expected, "{command}");
    }
    let hosts = |command| analyse(command, &Blocklist::default()).hosts();
    assert_eq!(hosts("npm ci && npx x"), ["registry.npmjs.org"]);
    assert_eq!(hosts("pip install x"), ["pypi.org", "files.pythonhosted.org"]);
    assert_eq!(hosts("npm test"), [""; 0]);
    assert_eq!(hosts("npm ci && curl https://example.org"), [""; 0]);
}
