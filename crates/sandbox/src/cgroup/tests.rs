//! Tests of finding and dividing cgroups, in directories made to look like them.

use super::*;

const MOUNTS: &str = "\
24 1 0:22 / /proc rw,nosuid - proc proc rw
30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
";

#[test]
fn our_cgroup_is_found_by_its_line_and_its_mount() {
    let found = |own, mounts| directory(own, mounts);
    let place = Path::new("/sys/fs/cgroup/user.slice/run-7.scope");
    assert_eq!(found("0::/user.slice/run-7.scope\n", MOUNTS).as_deref(), Ok(place));
    assert_eq!(found("4:memory:/a\n0::/\n", MOUNTS).as_deref(), Ok(Path::new("/sys/fs/cgroup/")));
    let part = MOUNTS.replace("0:26 / ", "0:26 /user.slice ");
    assert_eq!(
        found("0::/user.slice/run-7.scope\n", &part).as_deref(),
        Ok(Path::new("/sys/fs/cgroup/run-7.scope"))
    );
    for (own, mounts, reason) in [
        ("4:memory:/a\n", MOUNTS, "there is no cgroup v2 here"),
        ("0::/a\n", "24 1 0:22 / /proc rw - proc proc rw\n", "cgroup v2 is not mounted"),
        ("0::/../a\n", MOUNTS, "this process's cgroup is not mounted"),
        ("0::/other\n", &part, "this process's cgroup is not mounted"),
    ] {
        assert_eq!(found(own, mounts), Err(reason.to_owned()), "{own}");
    }
}

/// A directory that looks like a cgroup which could be divided.
fn cgroup(controllers: &str, processes: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in
        [("cgroup.controllers", controllers), ("cgroup.procs", processes), ("cgroup.subtree_control", "")]
    {
        fs::write(place.path().join(name), text).unwrap();
    }
    place
}

#[test]
fn what_is_not_handed_on_or_not_ours_alone_is_not_divided() {
    let check = |place: &tempfile::TempDir| DelegatedCgroup::check(place.path().to_owned(), |pid| pid < 10);
    let whole = cgroup("cpu memory pids\n", "1\n9\n");
    assert_eq!(check(&whole), Ok(DelegatedCgroup(whole.path().to_owned())));
    for (place, reason) in [
        (cgroup("cpu pids\n", "1\n"), "has no controller `memory`"),
        (cgroup("memory_other pids\n", "1\n"), "has no controller `memory`"),
        (cgroup("memory pids\n", "1\n10\n"), "holds other processes than this one"),
        (tempfile::tempdir().unwrap(), "cgroup.controllers`: No such file"),
    ] {
        let refused = check(&place).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn who_was_started_by_us_is_ours_and_init_is_not() {
    let proc = Path::new("/proc");
    assert!(descends_from_us(proc, std::process::id()));
    assert!(!descends_from_us(proc, std::os::unix::process::parent_id()));
    assert!(!descends_from_us(proc, 1));
    assert!(descends_from_us(proc, u32::MAX), "one that is gone is in nobody's way");
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    assert!(descends_from_us(proc, child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn limits_are_written_and_what_was_met_is_read() {
    let place = cgroup("memory pids\n", "");
    let path = place.path();
    for name in ["memory.max", "memory.oom.group", "pids.max"] {
        fs::write(path.join(name), "").unwrap();
    }
    let quota = Quota { memory_bytes: Some(4096), processes: Some(7), ..Quota::default() };
    let cgroup_procs = limit(path, &quota).unwrap();
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
    assert_eq!([read("memory.max"), read("memory.oom.group"), read("pids.max")], ["4096", "1", "7"]);
    let tree = CgroupTree { place: path.to_owned(), made: AtomicU64::new(0), left: Mutex::default() };
    let cgroup = CommandCgroup { tree: Box::leak(Box::new(tree)), path: path.to_owned(), cgroup_procs };
    assert_eq!(cgroup.met(), CgroupEvents::default());
    fs::write(path.join("memory.events"), "low 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 1\n").unwrap();
    fs::write(path.join("pids.events"), "max 0\n").unwrap();
    assert_eq!(cgroup.met(), CgroupEvents { memory: true, processes: false });
    fs::write(path.join("pids.events"), "max 3\n").unwrap();
    assert_eq!(cgroup.met(), CgroupEvents { memory: true, processes: true });
}

#[test]
fn a_directory_that_is_none_of_the_kernels_is_not_taken_for_one() {
    let place = tempfile::tempdir().unwrap();
    let quota = Quota { processes: Some(7), ..Quota::default() };
    assert_eq!(limit(place.path(), &quota).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_was_left_is_removed_when_it_is_empty() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["windlass-1-0", "windlass-1-1", "windlass-main", "other-1-0"] {
        fs::create_dir(path(name)).unwrap();
    }
    fs::create_dir(path("windlass-1-1/full")).unwrap();
    let tree = CgroupTree { place: place.path().to_owned(), made: AtomicU64::new(0), left: Mutex::default() };
    tree.remember_left();
    tree.sweep();
    let there =
        ["windlass-1-0", "windlass-1-1", "windlass-main", "other-1-0"].map(|name| path(name).exists());
    assert_eq!(there, [false, true, true, true]);
    fs::remove_dir(path("windlass-1-1/full")).unwrap();
    tree.sweep();
    assert!(!path("windlass-1-1").exists());
}
