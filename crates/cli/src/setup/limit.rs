//! `--limit NAME=NUMBER`.

use windlass::Quota;

use crate::problem::CliProblem;

const KNOWN: &str = "pids, mem_mb, fsize_mb, disk_mb, out_kb, cpu_s, wall_s, nofile";

const KILO: u64 = 1024;
const MEGA: u64 = 1024 * KILO;

/// Parses limits; of several with one name the tightest counts.
pub(super) fn parse(settings: &[String]) -> Result<Quota, CliProblem> {
    let mut limits = Quota::default();
    for setting in settings {
        let (name, number) = setting.split_once('=').ok_or_else(|| {
            CliProblem::usage(format!("--limit: `{setting}` is not of the form NAME=NUMBER"))
        })?;
        let number: u64 = number.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
            CliProblem::usage(format!(
                "--limit: `{name}` must be a whole number, at least 1; found `{number}`"
            ))
        })?;
        let (limit, unit) = match name {
            "pids" => (&mut limits.processes, 1),
            "mem_mb" => (&mut limits.memory_bytes, MEGA),
            "fsize_mb" => (&mut limits.file_bytes, MEGA),
            "disk_mb" => (&mut limits.disk_bytes, MEGA),
            "cpu_s" => (&mut limits.cpu_seconds, 1),
            "nofile" => (&mut limits.open_files, 1),
            "out_kb" => (&mut limits.output_bytes, KILO),
            "wall_s" => (&mut limits.wall_seconds, 1),
            _ => {
                return Err(CliProblem::usage(format!(
                    "--limit: there is no limit `{name}`; the limits are {KNOWN}"
                )));
            }
        };
        let number = number.saturating_mul(unit);
        *limit = Some(limit.map_or(number, |before| before.min(number)));
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(settings: &[&str]) -> Result<Quota, String> {
        let settings: Vec<_> = settings.iter().map(ToString::to_string).collect();
        parse(&settings).map_err(|problem| problem.message)
    }

    #[test]
    fn units_are_in_the_names_and_the_tightest_counts() {
        let memory_and_pids = Quota { memory_bytes: Some(2 << 20), processes: Some(5), ..Quota::default() };
        let expected = Quota { output_bytes: Some(3 << 10), wall_seconds: Some(4), ..memory_and_pids };
        assert_eq!(
            parsed(&["mem_mb=2", "out_kb=3", "wall_s=9", "wall_s=4", "wall_s=5", "pids=5"]),
            Ok(expected)
        );
    }

    #[test]
    fn what_makes_no_sense_is_said_with_what_does() {
        for (setting, expected) in [
            ("pids", "--limit: `pids` is not of the form NAME=NUMBER"),
            ("pids=0", "--limit: `pids` must be a whole number, at least 1; found `0`"),
            ("pids=-1", "--limit: `pids` must be a whole number, at least 1; found `-1`"),
        ] {
            assert_eq!(parsed(&[setting]), Err(expected.to_owned()));
        }
        assert!(parsed(&["ram=1"]).unwrap_err().ends_with(KNOWN));
    }
}
