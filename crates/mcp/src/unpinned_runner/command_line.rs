//! Finds the package in a command line of a package runner.

use std::path::Path;

/// Origin of a package, which decides how versions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageRegistry {
    /// npm packages: `name@1.2.3`.
    Npm,
    /// Python packages: `name==1.2.3`, or `name@1.2.3` for `uvx`.
    Python,
    /// Container images: `name:tag` or `name@sha256:…`.
    Container,
}

/// The argument that names a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackageRequest {
    pub(super) registry: PackageRegistry,
    /// Position of the argument.
    pub(super) argument: usize,
    /// Number of bytes before the package in it, for `--package=name`.
    pub(super) offset: usize,
}

/// A program that fetches and runs packages.
struct RunnerForm {
    program: &'static str,
    /// Words that must follow the program.
    subcommand: &'static [&'static str],
    registry: PackageRegistry,
    /// Options whose value names the package.
    package_options: &'static [&'static str],
    /// Options with a value of another kind.
    value_options: &'static [&'static str],
}

const NPM_VALUES: &[&str] = &["-c", "--call", "-w", "--workspace", "--registry", "--cache", "--prefix"];
const UV_VALUES: &[&str] = &[
    "--with",
    "--with-editable",
    "--with-requirements",
    "-w",
    "--python",
    "-p",
    "--index",
    "--index-url",
    "-i",
    "--default-index",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--directory",
    "--project",
    "--cache-dir",
    "--constraints",
    "-c",
    "--overrides",
    "--env-file",
    "--config-file",
    "--color",
    "--link-mode",
    "--resolution",
    "--prerelease",
    "--exclude-newer",
    "--index-strategy",
    "--keyring-provider",
];
const PIPX_VALUES: &[&str] = &["--python", "--pip-args", "--index-url", "-i", "--with"];
const CONTAINER_VALUES: &[&str] = &[
    "-a",
    "--attach",
    "--add-host",
    "--cap-add",
    "--cap-drop",
    "-c",
    "--cpu-shares",
    "--cpus",
    "--device",
    "--dns",
    "-e",
    "--env",
    "--env-file",
    "--entrypoint",
    "--expose",
    "--gpus",
    "-h",
    "--hostname",
    "--ip",
    "-l",
    "--label",
    "--log-driver",
    "--log-opt",
    "-m",
    "--memory",
    "--memory-swap",
    "--mount",
    "--name",
    "--net",
    "--network",
    "--network-alias",
    "-p",
    "--publish",
    "--pid",
    "--pids-limit",
    "--platform",
    "--pull",
    "--restart",
    "--runtime",
    "--security-opt",
    "--shm-size",
    "--stop-signal",
    "--stop-timeout",
    "--tmpfs",
    "--ulimit",
    "-u",
    "--user",
    "--userns",
    "-v",
    "--volume",
    "--volumes-from",
    "-w",
    "--workdir",
];

const RUNNERS: &[RunnerForm] = &[
    npm("npx", &[]),
    npm("npm", &["exec"]),
    npm("npm", &["x"]),
    npm("bunx", &[]),
    npm("bun", &["x"]),
    npm("pnpx", &[]),
    npm("pnpm", &["dlx"]),
    npm("yarn", &["dlx"]),
    RunnerForm {
        program: "uvx",
        subcommand: &[],
        registry: PackageRegistry::Python,
        package_options: &["--from"],
        value_options: UV_VALUES,
    },
    RunnerForm {
        program: "uv",
        subcommand: &["tool", "run"],
        registry: PackageRegistry::Python,
        package_options: &["--from"],
        value_options: UV_VALUES,
    },
    RunnerForm {
        program: "pipx",
        subcommand: &["run"],
        registry: PackageRegistry::Python,
        package_options: &["--spec"],
        value_options: PIPX_VALUES,
    },
    container("docker", &["run"]),
    container("docker", &["container", "run"]),
    container("podman", &["run"]),
    container("podman", &["container", "run"]),
    container("nerdctl", &["run"]),
];

const fn npm(program: &'static str, subcommand: &'static [&'static str]) -> RunnerForm {
    let package_options = &["-p", "--package"];
    RunnerForm {
        program,
        subcommand,
        registry: PackageRegistry::Npm,
        package_options,
        value_options: NPM_VALUES,
    }
}

const fn container(program: &'static str, subcommand: &'static [&'static str]) -> RunnerForm {
    RunnerForm {
        program,
        subcommand,
        registry: PackageRegistry::Container,
        package_options: &[],
        value_options: CONTAINER_VALUES,
    }
}

impl PackageRequest {
    /// Finds the package of a command line. `None` if it does not run a package.
    pub(super) fn parse(command: &str, args: &[String]) -> Option<Self> {
        let program = Path::new(command).file_name()?.to_str()?;
        let program =
            program.strip_suffix(".cmd").or_else(|| program.strip_suffix(".exe")).unwrap_or(program);
        let starts = |form: &&RunnerForm| {
            form.program == program
                && args.len() >= form.subcommand.len()
                && form.subcommand.iter().zip(args).all(|(word, arg)| word == arg)
        };
        RUNNERS.iter().find(starts)?.package(args)
    }
}

impl RunnerForm {
    fn package(&self, args: &[String]) -> Option<PackageRequest> {
        let found = |argument, offset| Some(PackageRequest { registry: self.registry, argument, offset });
        let mut first = None;
        let mut at = self.subcommand.len();
        while let Some(arg) = args.get(at) {
            if arg == "--" {
                return first.or_else(|| args.get(at + 1).and_then(|_| found(at + 1, 0)));
            }
            if !arg.starts_with('-') {
                // What follows belongs to the package.
                return first.or_else(|| found(at, 0));
            }
            let (name, has_value) = match arg.split_once('=') {
                Some((name, _)) => (name, true),
                None => (arg.as_str(), false),
            };
            if self.package_options.contains(&name) && first.is_none() {
                first = if has_value {
                    found(at, name.len() + 1)
                } else {
                    args.get(at + 1).and_then(|_| found(at + 1, 0))
                };
            }
            let takes_next = self.package_options.contains(&name) || self.value_options.contains(&name);
            at += if takes_next && !has_value { 2 } else { 1 };
        }
        first
    }
}
