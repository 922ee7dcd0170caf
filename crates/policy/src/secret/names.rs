//! The lists of names that tell of secrets by themselves. Everything is in lower case. The paths at which programs keep
//! credentials are not here: they are the table of `contract`.

/// What editors, people and programs add to the name of a copy.
pub(super) const COPIES: &[&str] =
    &["~", ".bak", ".backup", ".old", ".orig", ".save", ".saved", ".copy", ".swp", ".1"];

/// Hidden directories with secrets in them, wherever they are, also when a wildcard would find them.
pub(super) const HIDDEN: &[&str] = &[
    ".docker",
    ".terraform.d",
    ".fly",
    // Agents.
    ".codex",
    ".claude",
    ".gemini",
    ".cursor",
    ".copilot",
];

/// Other directories with secrets in them.
pub(super) const OTHERS: &[&str] = &[
    "application support/google",
    "keyrings",
    "keychains",
    "etc/ssh",
    "etc/kubernetes",
    "system-connections",
    "serviceaccount",
];

/// Files that are secrets, also when a wildcard would find them.
pub(super) const FILES: &[&str] = &[
    ".yarnrc",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".git/config",
    ".gitconfig",
    ".dev.vars",
    ".credentials*",
    ".env",
    ".env.*",
    ".envrc",
    ".*.env",
    ".lesshst",
    ".cabal/config",
    ".oh-my-zsh/custom/*.zsh",
    ".venv/pip.conf",
    ".virtualenvs/*/pip.conf",
    "atuin/key",
    "atuin/session",
    "env.production",
    "env.prod",
    "env.staging",
    "env.local",
    "deploy_key",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "etc/passwd",
    "etc/passwd-",
    "etc/environment",
    "fish_history",
];

/// Endings of files that are secrets.
pub(super) const EXTENSIONS: &[&str] = &[
    "pem",
    "key",
    "p12",
    "pfx",
    "p8",
    "jks",
    "keystore",
    "ppk",
    "kdbx",
    "kdb",
    "gpg",
    "keytab",
    "tfstate",
    "tfvars",
    "ovpn",
    "kubeconfig",
    "keychain",
    "keychain-db",
    "pgp",
    "psafe3",
    "env",
];

/// Files that are secrets if they are called exactly so: `*.json` is no search for them.
pub(super) const NAMED: &[&str] = &[
    "*.tfstate.backup",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "ssh_host_*",
    "authorized_keys",
    "secring.*",
    "sasl_passwd",
    "debian.cnf",
    "ngrok.yml",
    "krb5cc_*",
    "credentials",
    "credentials.*",
    "credential",
    "credential.*",
    "*-credentials.json",
    "*_credentials.json",
    "secrets",
    "secrets.*",
    "secret",
    "secret.*",
    "*service-account*.json",
    "*firebase-adminsdk*.json",
    "*service_account*.json",
    "client_secret*.json",
    "auth.json",
    "token",
    "token.*",
    "tokens.*",
    "access_token*",
    "*_token",
    "apikey*",
    "api_key*",
    "api-key*",
    "password",
    "password.*",
    "passwords*",
    "passwd",
    "vault_pass*",
    "local.settings.json",
    "appsettings.production.json",
    "vault.yml",
    "vault.yaml",
    "wp-config.php",
    "kubeconfig*",
    "cookies",
    "cookies.*",
    "login data",
    "logins.json",
    "key?.db",
    "keystore.*",
    "keys.json",
];

/// Fragments that make a wildcard a search for secrets.
pub(super) const FRAGMENTS: &[&str] =
    &["cred", "secret", "passw", "token", "api_key", "apikey", "_rsa", "ssh_host", "shadow", "env"];

/// Endings of what only looks secret: half a pair, an example, the source of a program, a page about it.
pub(super) const HARMLESS: &[&str] = &[
    "pub", "example", "sample", "template", "dist", "rs", "py", "js", "ts", "tsx", "jsx", "go", "c", "h",
    "cc", "cpp", "hpp", "java", "kt", "rb", "cs", "swift", "scala", "md", "rst", "html", "css", "vue",
    "svelte", "ex", "exs", "lua", "zig",
];

/// Hidden places in a home directory that are read for programming: tools, caches, sources of libraries, and how an editor
/// looks. What is secret there is on the other lists.
pub(super) const TOOLS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cabal",
    ".cache",
    ".cargo",
    ".conda",
    ".deno",
    ".emacs.d",
    ".gem",
    ".ghcup",
    ".gradle",
    ".ivy2",
    ".julia",
    ".local",
    ".m2",
    ".npm",
    ".nuget",
    ".nvm",
    ".oh-my-zsh",
    ".opam",
    ".pub-cache",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".stack",
    ".tmux.conf",
    ".venv",
    ".vim",
    ".vimrc",
    ".virtualenvs",
    ".vscode/extensions",
    ".yarn",
];

/// What may be read below `/proc`: nothing of any process.
pub(super) const PROC: &[&str] = &[
    "cpuinfo",
    "meminfo",
    "version",
    "loadavg",
    "uptime",
    "mounts",
    "filesystems",
    "stat",
    "partitions",
    "sys",
    "devices",
    "modules",
    "swaps",
    "vmstat",
    "diskstats",
    "cgroups",
    "interrupts",
];

/// What may be read below `/dev`.
pub(super) const DEVICES: &[&str] = &["null", "stdin"];

/// Directories so high up that anyone's secrets may be below them. `*` is one name.
pub(super) const WIDE: &[&str] = &[
    "/home",
    "/home/*",
    "/root",
    "/users",
    "/users/*",
    "/etc",
    "/proc",
    "/dev",
    "/run",
    "/sys",
    "/var",
    "/var/home",
    "/var/home/*",
    "/var/run",
    "/var/lib",
    "/mnt",
    "/mnt/*",
    "/media",
    "/private",
    "/private/*",
    "/opt",
    "/srv",
    "~",
    "~/.config",
    "~/.local",
    "~/.local/share",
    "~/.cache",
    "~/library",
];
