//! `--limit NAME=NUMBER`.

use windlass::Quota;

use crate::problem::Problem;

const KNOWN: &str = "pids, mem_mb, fsize_mb, disk_mb, out_kb, cpu_s, wall_s, nofile";

/// Reads limits; the last of a name counts.
pub(super) fn parse(settings: &[String]) -> Result<Quota, Problem> {
    let mut limits = Quota::default();
    for setting in settings {
        let (name, number) = setting
            .split_once('=')
            .ok_or_else(|| Problem::usage(format!("--limit: `{setting}` is not of the form NAME=NUMBER")))?;
        let number: u64 = number.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
            Problem::usage(format!("--limit: `{name}` must be a whole number, at least 1; found `{number}`"))
        })?;
        let kilo = Some(number.saturating_mul(1024));
        let mega = Some(number.saturating_mul(1024 * 1024));
        match name {
            "pids" => limits.processes = Some(number),
            "mem_mb" => limits.memory_bytes = mega,
            "fsize_mb" => limits.file_bytes = mega,
            "disk_mb" => limits.disk_bytes = mega,
            "cpu_s" => limits.cpu_seconds = Some(number),
            "nofile" => limits.open_files = Some(number),
            "out_kb" => limits.output_bytes = kilo,
            "wall_s" => limits.wall_seconds = Some(number),
            _ => {
                return Err(Problem::usage(format!(
                    "--limit: there is no limit `{name}`; there are {KNOWN}"
                )));
            }
        }
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
    fn units_are_in_the_names() {
        let memory_and_pids = Quota { memory_bytes: Some(2 << 20), processes: Some(5), ..Quota::default() };
        let expected = Quota { output_bytes: Some(3 << 10), wall_seconds: Some(4), ..memory_and_pids };
        assert_eq!(parsed(&["mem_mb=2", "out_kb=3", "wall_s=9", "wall_s=4", "pids=5"]), Ok(expected));
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
