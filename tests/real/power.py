#!/usr/bin/env python3
"""Edits files, takes the power away, and compares. Called by power.sh.

usage: power.py WINDLASS DIRECTORY one|two MOMENTS SEED
"""
import json, os, random, subprocess, sys, time

windlass, place, layout, moments, seed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
losses = 0
disks = ["all"] if layout == "one" else ["home", "work"]
home = f"{place}/mnt/{disks[0]}/home"
work = f"{place}/mnt/{disks[-1]}/w"
NAMES = [f"f{at}.txt" for at in range(5)] + ["d/one.txt", "d/e/two.txt", "g/three.txt"]
ENV = {"PATH": os.environ["PATH"], "HOME": place, "WINDLASS_HOME": home, "LANG": "C.UTF-8", "NO_COLOR": "1"}


def sh(*args):
    subprocess.run(args, check=True, capture_output=True)


def image_of(disk):
    return f"{place}/{disk}.{losses}.img"


def mount(disk):
    sh("mount", "-o", "loop", image_of(disk), f"{place}/mnt/{disk}")


def read_images():
    return {disk: open(image_of(disk), "rb").read() for disk in disks}


def lose_power():
    """Goes on with what the devices have got so far."""
    images = read_images()
    # A copy into which the kernel wrote is no state that a disk ever had.
    while images != (again := read_images()):
        images = again
    global losses
    losses += 1
    for disk, image in images.items():
        sh("umount", f"{place}/mnt/{disk}")
        # Another file: the loop device of the old one may live on for a moment.
        os.remove(f"{place}/{disk}.{losses - 1}.img")
        with open(image_of(disk), "wb") as file:
            file.write(image)
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
        return start(["call", "-s", "danger-full-access", "apply_patch", text]), after
    script = f"{place}/script.json"
    with open(script, "w") as file:
        json.dump({"turns": [{"calls": [{"name": "apply_patch", "input": text}]}, {"text": "done"}]}, file)
    return start(["exec", "-s", "danger-full-access", "--skip-git-repo-check", "--script", script, "go"]), after


def run(*args):
    done = subprocess.run([windlass, *args], cwd=work, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def kill_on_the_way(process):
    """Kills a process at any time, most often while it changes files: as long as there is a write-ahead log."""
    if rng.random() < 0.7:
        while process.poll() is None and not logs():
            time.sleep(0.0005)
        limit = rng.random() * changing
    else:
        limit = rng.random() * typical
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()


def logs():
    directory = f"{home}/edits/open"
    return [name for name in os.listdir(directory) if name.endswith(".change")] if os.path.isdir(directory) else []


def differences(found, expected):
    names = sorted(found.keys() | expected.keys())
    return [f"{name}: {str(found.get(name, 'absent'))[:40]!r}, not {str(expected.get(name, 'absent'))[:40]!r}"
            for name in names if found.get(name, "absent") != expected.get(name, "absent")]


def fail(moment, what):
    print(f"FAILED  {layout}, moment {moment}, seed {seed}: {what}")
    sys.exit(1)


for disk in disks:
    os.makedirs(f"{place}/mnt/{disk}")
    with open(image_of(disk), "wb") as file:
        file.truncate(48 << 20)
    sh("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image_of(disk))
    mount(disk)
os.makedirs(home), os.makedirs(work)
for name in NAMES[:5]:
    with open(f"{work}/{name}", "w") as file:
        file.write(f"{name} 0\n")
os.sync()

# What the files were before each edit that is not undone, the newest last.
states, number, begun = [tree()], 0, time.time()
# How long an edit takes, and how long it changes files, in seconds.
typical, changing = 0.1, 0.03
count = {"finished": 0, "cut short": 0, "of these made": 0, "undone": 0}
for moment in range(moments):
    cut, trail = None, []
    for _ in range(rng.randint(1, 3)):
        number += 1
        is_undo = len(states) > 1 and rng.random() < 0.25
        started = time.time()
        process, after = (start(["undo"]), states[-2]) if is_undo else edit(number, states[-1])
        if rng.random() < 0.7:
            kill_on_the_way(process)
        output = (process.stdout.read() + process.stderr.read()).decode()
        code = process.wait()
        trail.append(("undo" if is_undo else "edit", number, code))
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
        fail(moment, f"after the power loss{' in an edit' if cut else ''}: {differences(found, states[-1])}\nedits of this moment: {trail}\n{said[-3000:]}")
    if logs():
        fail(moment, f"a log is left: {logs()}")
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
