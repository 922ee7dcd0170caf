//! Tests of command lines without a version.

use std::time::SystemTime;

use super::*;

fn found(command: &str, listing: Option<&ServerListing>) -> Option<UnpinnedRunner> {
    let mut words = command.split(' ').map(str::to_owned);
    let config =
        McpServerConfig { command: words.next(), args: words.collect(), ..McpServerConfig::default() };
    UnpinnedRunner::find(&config, listing)
}

#[test]
fn a_command_line_without_a_version_gets_the_line_to_use() {
    for (command, package, pinned) in [
        ("npx -y @scope/server /data", "@scope/server", "@scope/server@VERSION"),
        ("npx server@latest", "server@latest", "server@VERSION"),
        ("npx server@^1.2.0", "server@^1.2.0", "server@VERSION"),
        ("npx server@1", "server@1", "server@VERSION"),
        ("npx server@1.x", "server@1.x", "server@VERSION"),
        ("/usr/bin/npx --yes --package=server@next server", "server@next", "server@VERSION"),
        ("npx -p server -c run", "server", "server@VERSION"),
        ("npm exec -- server", "server", "server@VERSION"),
        ("bunx server", "server", "server@VERSION"),
        ("pnpm dlx server", "server", "server@VERSION"),
        ("npx github:someone/server", "github:someone/server", "github:someone/server#COMMIT"),
        ("uvx mcp-server-git --repository .", "mcp-server-git", "mcp-server-git==VERSION"),
        ("uvx server[extra]@latest", "server[extra]@latest", "server[extra]==VERSION"),
        ("uvx --python 3.12 --from server>=1 run", "server>=1", "server==VERSION"),
        (
            "uvx --from git+https://me@host.test/a/b run",
            "git+https://me@host.test/a/b",
            "git+https://me@host.test/a/b@COMMIT",
        ),
        ("uv tool run server", "server", "server==VERSION"),
        ("pipx run --spec server run", "server", "server==VERSION"),
        ("docker run -i --rm -e TOKEN mcp/server", "mcp/server", "mcp/server@sha256:DIGEST"),
        (
            "docker run --name=a host.test:5000/server:latest",
            "host.test:5000/server:latest",
            "host.test:5000/server@sha256:DIGEST",
        ),
        ("podman run server", "server", "server@sha256:DIGEST"),
    ] {
        let found = found(command, None).unwrap_or_else(|| panic!("{command}"));
        assert_eq!((found.package.as_str(), found.pinned.as_str()), (package, pinned), "{command}");
        let line = command.split(' ').skip(1).map(|word| word.replace(package, pinned));
        assert_eq!(found.line, format!("args = {}", json!(line.collect::<Vec<_>>())));
    }
}

#[test]
fn a_pinned_package_and_any_other_program_are_fine() {
    for command in [
        "npx -y @scope/server@1.2.3",
        "npx server@1.2.3-beta.1",
        "npx -p server@1.2.3 server",
        "npx ./server",
        "npx /opt/server",
        "npx git+https://host.test/a#0123456789012345678901234567890123456789",
        "uvx server==1.2",
        "uvx server@1.2.3",
        "uvx --from server[a]==1.2.3 run",
        "uvx --from git+https://host.test/a@0123456789012345678901234567890123456789 run",
        "pipx run server==1.2.3",
        "docker run -i --rm mcp/server:1.2",
        "docker run -v /a:/b mcp/server@sha256:abc",
        "docker exec -i box server",
        "node server.js",
        "npx",
        "uv run server.py",
        "docker run -i",
    ] {
        assert_eq!(found(command, None), None, "{command}");
    }
    assert_eq!(UnpinnedRunner::find(&McpServerConfig::default(), None), None);
}

#[test]
fn the_version_is_taken_from_a_server_that_is_called_like_its_package() {
    let listing = |name: &str, version: &str| ServerListing {
        protocol_version: String::new(),
        server_name: name.into(),
        server_version: version.into(),
        instructions: None,
        has_resources: false,
        has_prompts: false,
        tools: Vec::new(),
        unusable: Vec::new(),
        listed_at: SystemTime::UNIX_EPOCH,
        fresh_for: None,
        is_private: false,
    };
    let pinned = |name, version| found("npx -y @scope/my-server", Some(&listing(name, version))).unwrap();
    assert_eq!(pinned("my-server", "1.2.3").pinned, "@scope/my-server@1.2.3");
    assert_eq!(pinned("@scope/my-server", "1.2.3").version_command, None);
    for (name, version) in
        [("other", "1.2.3"), ("my-server", "latest"), ("", "1.2.3"), ("my-server", "1.2.3 && x")]
    {
        assert_eq!(pinned(name, version).pinned, "@scope/my-server@VERSION");
    }
    let warning = found("npx -y server --token abc", None).unwrap().warning("s");
    assert_eq!(
        warning,
        "MCP server `s` runs whichever version of `server` is the newest when it starts; pin it with \
         `args = [\"-y\",\"server@VERSION\",\"--token\",\"***\"]` (`npm view server version` prints the version)"
    );
}
