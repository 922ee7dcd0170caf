//! The environment that the user's login files create, read once. Commands start without these
//! files, which is faster and reproducible.

use std::{collections::BTreeMap, path::Path, time::Duration};

use windlass::{ApprovalPolicy, Command, Exit, Policy, Sandbox, SandboxMode, host::Machine};

use crate::{
    problem::{CliProblem, chain},
    screen::visible_path,
};

/// Maximum time for login files; after that they are waiting for something that does not come.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Precedes the variables, so that output of login files is not taken for one.
const BEGIN: &str = "\0windlass-environment\0";

/// Returns the environment of a login shell. The files are the user's own, and run with the user's
/// rights, as at every login.
pub(crate) fn environment(
    shell: &Path,
    cwd: &Path,
    variables: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, CliProblem> {
    let script = r"printf '\0windlass-environment\0'; env -0";
    let argv = [&*shell.to_string_lossy(), "-l", "-c", script].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: Some(LOGIN_TIMEOUT) };
    let policy = Policy {
        cwd: cwd.to_owned(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let failed = |why: &str| {
        CliProblem::failed(format!(
            "cannot read the environment of `{} -l` (`shell_environment_policy.experimental_use_profile`): {why}",
            visible_path(shell)
        ))
    };
    let host = Machine::new(variables).confine(&policy.grant_to_person());
    let host = host.map_err(|error| failed(&chain(&error)))?;
    let cancel = windlass::Stop::default().token();
    let ended = crate::runtime()?.block_on(host.run(&command, &cancel, &|_| {}));
    let ended = ended.map_err(|error| failed(&chain(&error)))?;
    match ended.report.exit {
        Exit::Code(0) => read(&ended.output).ok_or_else(|| failed("it printed too much, or no variables")),
        Exit::TimedOut => Err(failed(&format!("it took longer than {} s", LOGIN_TIMEOUT.as_secs()))),
        exit => Err(failed(&format!("it exited with code {}", exit.code()))),
    }
}

/// Parses the variables in the output of the shell, as far as they are text.
fn read(output: &[u8]) -> Option<BTreeMap<String, String>> {
    let at = output.windows(BEGIN.len()).position(|window| window == BEGIN.as_bytes())?;
    let pairs = output[at + BEGIN.len()..].split(|byte| *byte == 0).filter_map(|pair| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    // `_` belongs to the program that printed them, not to the shell.
    Some(pairs.filter(|(name, _)| name != "_").collect::<BTreeMap<_, _>>()).filter(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_login_files_print_is_no_variable() {
        let output = b"A=greeting\n\0windlass-environment\0B=1\nC=2\0_=env\0\xff=x\0D=\0";
        let found = read(output).unwrap();
        let expected = [("B", "1\nC=2"), ("D", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
        assert_eq!(read(b"B=1\0"), None);
    }
}
