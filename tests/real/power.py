#!/usr/bin/env python3
"""Edits files, takes the power away, and compares. Called by power.sh.

usage: power.py WINDLASS DIRECTORY one|two MOMENTS SEED
"""
import json, os, random, subprocess, sys, time

windlass, place, layout, moments, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
disks = ["all"] if layout == "one" else ["home", "work"]
home = f"{place}/mnt/{disks[0]}/home"
work = f"{place}/mnt/{disks[-1]}/w"
NAMES = [f"f{at}.txt" for at in range(5)] + ["d/one.txt", "d/e/two.txt", "g/three.txt"]
ENV = {"PATH": os.environ["PATH"], "HOME": place, "WINDLASS_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": "1"}


def sh(*args):
    subprocess.run(args, check=True, capture_output=True)


def mount(disk):
    sh("mount", "-o", "loop", f"{place}/{disk}.img", f"{place}/mnt/{disk}")


def lose_power():
    """Goes on with what the devices have got so far."""
    images = {disk: open(f"{place}/{disk}.img", "rb").read() for disk in disks}
    for disk, image in images.items():
        sh("umount", f"{place}/mnt/{disk}")
        with open(f"{place}/{disk}.img", "wb") as file:
            file.write(image)
    for disk in disks:
        mount(disk)


def tree():
    """Every file and what it holds, and every directory."""
    found = {}
    for directory, _, files in os.walk(work):
        inside = os.path.relpath(directory, work)
        if inside != ".":
            found[inside + "/"] = None
        for name in files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, work)] = open(path, "rb").read().decode(errors="replace")
    return {name: text for name, text in found.items() if name != "foreign"}


def with_directories(files):
    state = dict(files)
    for name in files:
        while name := os.path.dirname(name):
            state[name + "/"] = None
    return state


def patch(files, number):
    """A patch of some files, and what they are then. Directories that become empty stay."""
    after, lines = {name: text for name, text in files.items() if text is not None}, ["*** Begin Patch"]
    for name in rng.sample(NAMES, rng.randint(1, 5)):
        old = after.get(name)
        new = f"{name} {number} {'x' * rng.choice([1, 100, 5000])}\n"
        if old is None:
            lines += [f"*** Add File: {name}", "+" + new.rstrip("\n")]
            after[name] = new
        elif rng.random() < 0.2:
            lines += [f"*** Delete File: {name}"]
            del after[name]
        else:
            lines += [f"*** Update File: {name}"]
            if rng.random() < 0.15 and "moved.txt" not in after:
                lines += ["*** Move to: moved.txt"]
                del after[name]
                name = "moved.txt"
            lines += ["@@", "-" + old.rstrip("\n"), "+" + new.rstrip("\n")]
            after[name] = new
    kept = {name: None for name, text in files.items() if text is None}
    return "\n".join(lines + ["*** End Patch", ""]), kept | with_directories(after)


def start(args, text=None):
    process = subprocess.Popen([windlass, *args], cwd=work, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write((text or "").encode())
    process.stdin.close()
    return process


def edit(number, state):
    """Starts an edit in one of the ways there are."""
    text, after = patch(state, number)
    how = rng.choice(["apply-patch", "call", "exec"])
    if how == "apply-patch":
        return start(["apply-patch"], text), after
    if how == "call":
        return start(["call", "-s", "danger-full-access", "apply_patch", json.dumps({"input": text})]), after
    script = f"{place}/script.json"
    with open(script, "w") as file:
        json.dump({"turns": [{"calls": [{"name": "apply_patch", "input": text}]}, {"text": "done"}]}, file)
    return start(["exec", "-s", "danger-full-access", "--skip-git-repo-check", "--script", script, "go"]), after


def run(*args):
    done = subprocess.run([windlass, *args], cwd=work, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def differences(found, expected):
    names = sorted(found.keys() | expected.keys())
    return [f"{name}: {str(found.get(name, 'absent'))[:40]!r}, not {str(expected.get(name, 'absent'))[:40]!r}"
            for name in names if found.get(name, "absent") != expected.get(name, "absent")]


def fail(moment, what):
    print(f"FAILED  {layout}, moment {moment}, seed {seed}: {what}")
    sys.exit(1)


for disk in disks:
    os.makedirs(f"{place}/mnt/{disk}")
    with open(f"{place}/{disk}.img", "wb") as file:
        file.truncate(48 << 20)
    sh("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", f"{place}/{disk}.img")
    mount(disk)
os.makedirs(home), os.makedirs(work)
for name in NAMES[:5]:
    with open(f"{work}/{name}", "w") as file:
        file.write(f"{name} 0\n")
os.sync()

# What the files were before each edit that is not undone, the newest last.
states, number, begun = [tree()], 0, time.time()
typical = 0.1
count = {"finished": 0, "cut short": 0, "of these made": 0, "undone": 0}
for moment in range(moments):
    cut = None
    for _ in range(rng.randint(1, 3)):
        number += 1
        is_undo = len(states) > 1 and rng.random() < 0.25
        started = time.time()
        process, after = (start(["undo"]), states[-2]) if is_undo else edit(number, states[-1])
        if rng.random() < 0.6:
            try:
                process.wait(rng.random() * typical * 1.1)
            except subprocess.TimeoutExpired:
                process.kill()
        output = (process.stdout.read() + process.stderr.read()).decode()
        code = process.wait()
        if code == -9:
            cut = (is_undo, after)
            break
        if code != 0:
            fail(moment, f"an edit ended with {code}: {output}")
        typical = 0.8 * typical + 0.2 * (time.time() - started)
        states = states[:-1] if is_undo else states + [after]
        count["finished"] += 1
        if differences(tree(), states[-1]):
            fail(moment, f"an edit did something else: {differences(tree(), states[-1])}")
    # Something else on one of the file systems is flushed: then it is ahead of the other.
    for directory in rng.choice([[], [work], [home]]):
        with open(f"{directory}/foreign", "w") as file:
            file.write(str(moment))
            os.fsync(file.fileno())
    time.sleep(rng.choice([0, 0, 0.01]))
    lose_power()
    code, said = run("undo", "--list")
    if code != 0:
        fail(moment, f"undo --list ended with {code}: {said}")
    found = tree()
    if cut and not differences(found, cut[1]) and found != states[-1]:
        states = states[:-1] if cut[0] else states + [cut[1]]
        count["of these made"] += 1
    count["cut short"] += cut is not None
    if differences(found, states[-1]):
        fail(moment, f"after the power loss{' in an edit' if cut else ''}: {differences(found, states[-1])}\n{said}")
    left = os.listdir(f"{home}/edits/open") if os.path.isdir(f"{home}/edits/open") else []
    if [name for name in left if name.endswith(".change")]:
        fail(moment, f"a log is left: {left}")
    for _ in range(rng.choice([0, 0, 1, 2])):
        if len(states) < 2:
            break
        code, said = run("undo")
        states.pop()
        count["undone"] += 1
        if code != 0 or differences(tree(), states[-1]):
            fail(moment, f"undo ended with {code}: {said}\n{differences(tree(), states[-1])}")
while len(states) > 1:
    code, said = run("undo")
    states.pop()
    count["undone"] += 1
    if code != 0 or differences(tree(), states[-1]):
        fail("of the end", f"undo ended with {code}: {said}\n{differences(tree(), states[-1])}")
said = ", ".join(f"{number} {what}" for what, number in count.items())
print(f"ok      {layout} file system(s): {moments} losses of power in {time.time() - begun:.0f} s; edits: {said}")
