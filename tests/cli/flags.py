"""Runs every command with every flag that its --help-all lists, and with every kind of bad value; see flags.sh. Each run has to
end by itself, with a documented status, say in a few printable lines what is wrong, and leave other files alone."""
import os, pathlib, re, shutil, socket, struct, subprocess, sys, threading, time

PROGRAM, SERVER, SCRATCH = sys.argv[1:4]
ONLY = set(sys.argv[4:])  # commands to test; empty: all
DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "studies"
LIMIT_S = 120   # seconds; the machine may be busy
MOST_LINES = 6  # largest number of lines on stderr
STATUSES = {0, 1, 2, 4}  # not 3 (the system failed) or 5 (no progress), which no value of a flag may cause

SUITE = """name: tiny
sampling: {warmup_steps: 0, min_steps: 1, max_steps: 1}
training: {model: mlp, strategy: ddp, batch_size: 1, ranks: 1}
"""
# The cheapest valid command line of each command. A flag that is already in it is replaced.
BASE = {
    "collective": ["all_reduce", "-b", "8", "-e", "8", "--iters", "1", "--device", "cpu"],
    "compare": ["small.h5", "again.h5"],
    "doctor": ["--device", "cpu"],
    "import": ["osu.txt", "-o", "new.h5", "--ranks", "2", "--device", "cpu", "--transport", "mpi"],
    "launch": ["tiny.yaml", "--print", "--container", "apptainer"],  # which needs no ranks in the build
    "list": [],
    "plan": ["tiny.yaml"],
    "predict": ["shaped.h5", "--ranks", "8"],
    "report": ["small.h5"],
    "run": ["tiny.yaml", "-o", "new.h5", "--device", "cpu", "-q"],
    "submit": ["tiny.yaml", "--print"],
    "train": ["train.yaml", "--steps", "1", "--batch-size", "1", "--device", "cpu"],
}
WHOLE = PROGRAM + "-torch"  # the program for these commands; missing in a build without LibTorch
ON_RANKS = {"collective", "doctor", "run", "train"}
ESCAPE = "\x1b[31mred\x07"
VALUES = {
    "empty": "", "NaN": "nan", "infinity": "inf", "negative infinity": "-inf", "negative": "-1", "zero": "0",
    "huge": "1e300", "300 digits": "9" * 300, "a word": "frobnicate", "no ASCII": "größe模型", "control characters": ESCAPE,
    "a missing file": "missing/file", "a folder": "folder", "a pipe": "pipe", "an endless device": "/dev/zero",
    "a full device": "/dev/full", "a loop of links": "loop", "an unreadable file": "unreadable",
}
INTERNAL = re.compile(r"std::|exception|bad_alloc|basic_string|what\(\)|terminate called|filesystem error|Assertion|"
                      r"shardmark: failed: |\.cpp:\d|\.h:\d")


class Server:
    """The program, and that of commands on ranks, each loaded once and forked for each run."""

    def __init__(self, number):
        self.folder = pathlib.Path(SCRATCH) / f"server{number}" / "work"
        self.folder.mkdir(parents=True)
        # A stand-in takes the place of the converter of plots, which would need most of the time of all runs.
        converter = self.folder.parent / "bin" / "rsvg-convert"
        converter.parent.mkdir()
        converter.symlink_to(shutil.which("true"))
        self.environment = dict(os.environ, PATH=f"{converter.parent}:{os.environ['PATH']}", OMP_NUM_THREADS="1",
                                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                # Starts one rank without a daemon and without a search for networks, which halves
                                # the time of a run.
                                OMPI_MCA_ess_singleton_isolated="1", OMPI_MCA_pml="ob1", OMPI_MCA_btl="self",
                                # All runs are job 0, so the two servers would share a session folder.
                                OMPI_MCA_orte_tmpdir_base=str(self.folder.parent))
        self.light, self.whole = (self.load(program) for program in (PROGRAM, WHOLE if os.path.exists(WHOLE) else PROGRAM))
        for study in DATA.iterdir():
            shutil.copy(study, self.folder)
            if study.name.startswith("small"):
                shutil.copy(study, self.folder / study.name.replace("small", "again"))
        (self.folder / "tiny.yaml").write_text(SUITE)
        (self.folder / "train.yaml").write_text("model: mlp\n")
        shutil.copy(DATA.parent / "import" / "osu-5.8.txt", self.folder / "osu.txt")
        (self.folder / "folder").mkdir()
        (self.folder / "loop").symlink_to("loop2")
        (self.folder / "loop2").symlink_to("loop")
        os.mkfifo(self.folder / "pipe")
        (self.folder / "unreadable").write_text("secret")
        (self.folder / "unreadable").chmod(0)
        self.before = self.files()

    def load(self, program):
        """The program and the path of its socket, once it waits there."""
        path = str(self.folder.parent / pathlib.Path(program).name)
        server = subprocess.Popen([program, path, str(os.getpid())], env=dict(self.environment, LD_PRELOAD=SERVER))
        limit = time.monotonic() + 300
        while not os.path.exists(path):
            if time.monotonic() > limit: sys.exit(f"FAILED: the fork server of {program} opened no socket within 300 s")
            if server.poll() is not None: sys.exit(f"FAILED: the fork server of {program} ended with {server.returncode}")
            time.sleep(0.01)
        return program, path

    def files(self):
        found = {}
        for path in self.folder.rglob("*"):
            about = path.lstat()
            found[str(path.relative_to(self.folder))] = (about.st_mode, about.st_size, 0 if path.is_dir() else about.st_mtime_ns)
        return found

    def run(self, arguments):
        """Wait status (None: it did not end), stdout, stderr."""
        program, path = self.whole if arguments[0] in ON_RANKS else self.light
        texts = b"".join(text.encode() + b"\0" for text in [program, *arguments, *map("=".join, self.environment.items())])
        names = [os.devnull, self.folder.parent / "out", self.folder.parent / "err", self.folder]
        modes = [os.O_RDONLY, *2 * [os.O_WRONLY | os.O_CREAT | os.O_TRUNC], os.O_PATH]
        files = [os.open(name, mode, 0o600) for name, mode in zip(names, modes)]
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(path)
            socket.send_fds(server, [struct.pack("lll", len(texts), 1 + len(arguments), os.getpid())], files)
            for file in files: os.close(file)
            server.sendall(texts)
            try:
                server.settimeout(LIMIT_S)
                _, status = struct.unpack("ii", server.makefile("rb").read(8))
            except TimeoutError:
                status = None    # the server kills it, as nobody waits for it anymore
        said = [(self.folder.parent / name).read_bytes() for name in ("out", "err")]
        return status, *said

    def tidy(self, arguments):
        """What a run changed that its arguments do not name; all is put back as it was."""
        named = {text.split("/")[0] for text in arguments if text} | {"results"}
        wrong = []
        after = self.files()
        for path in sorted(set(after) | set(self.before), reverse=True):
            if after.get(path) == self.before.get(path): continue
            asked = any(path.split("/")[0].startswith(name) for name in named) and path not in self.before
            if not asked: wrong.append(path)
            if path in after and path not in self.before:
                whole = self.folder / path
                whole.rmdir() if whole.is_dir() and not whole.is_symlink() else whole.unlink()
        return wrong


def commands():
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) ", text, re.M)


def arguments_of(command):
    """(name, all names, takes a value, place among the positional ones from 1 or 0) of everything that the help lists."""
    text = subprocess.run([PROGRAM, command, "--help-all"], capture_output=True, text=True, check=True).stdout
    found, positional = [], False
    for line in text.splitlines():
        if line and not line.startswith(" "): positional = line == "Positionals:"
        match = re.match(r"  (\S+)(?: ([A-Z]{3,})\b)?", line)
        if not match or line.startswith("   ") or match[1].startswith(("-h,", "--help")): continue
        names = match[1].split(",")
        place = 1 + sum(other[3] > 0 for other in found) if positional else 0
        found.append((names[-1], names, match[2] is not None, place))
    return found


def with_value(base, names, value, positional):
    """The base line with the flag, or the argument of that place, replaced; None as value: the flag is the last word."""
    if positional: return base[:positional - 1] + ([value] if value is not None else []) + base[positional:]
    line = list(base)
    for name in names:
        if name in line: del line[line.index(name):line.index(name) + 2]
    return line + [names[-1]] + ([value] if value is not None else [])


def shown(value):
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", value)


def problems(line, names, value, result, wrong_files):
    status, out, err = result
    if status is None: return [f"it did not end in {LIMIT_S} s"]
    found = []
    if os.WIFSIGNALED(status): return [f"ended by signal {os.WTERMSIG(status)}"]
    code = os.WEXITSTATUS(status)
    try:
        out, err = out.decode(), err.decode()
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    if code not in STATUSES: found.append(f"exit status {code}")
    if value == "" and code != 2: found.append(f"an empty value is accepted: exit status {code}")
    if value is None and code != 2: found.append(f"a missing value is accepted: exit status {code}")
    for name, text in (("stdout", out), ("stderr", err)):
        raw = re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
        if raw: found.append(f"{name} has the control character {raw[0]!r}")
        internal = INTERNAL.search(text)
        if internal: found.append(f"{name} has internal words: {internal[0]}")
    if code != 0 and len(err.splitlines()) > MOST_LINES: found.append(f"{len(err.splitlines())} lines on stderr")
    if code == 2:
        accepted = [name.strip("-") if name.startswith("--") else name for name in names]
        if value: accepted += [shown(value)[:40], value[:40]]
        if not any(word in err for word in accepted): found.append("no line names the flag or its value")
    if any(len(text) > 1500 for text in err.splitlines()): found.append("a line of more than 1500 characters")
    if wrong_files: found.append(f"it changed {wrong_files}")
    return found


def cases():
    for command in commands():
        if ONLY and command not in ONLY: continue
        if command not in BASE: sys.exit(f"FAILED: flags.py has no line of the new command {command}: add one to BASE")
        for name, names, takes_value, positional in arguments_of(command):
            if positional and name == "flags": continue  # this option of launch and submit is never filled
            if not takes_value:
                yield command, names, None, "as it is", [command] + BASE[command] + [names[-1]]
                continue
            if not positional: yield command, names, None, "no value", [command] + with_value(BASE[command], names, None, False)
            for kind, value in VALUES.items():
                if positional and value.startswith("-"): continue  # it would be parsed as a flag
                if kind == "an unreadable file" and os.geteuid() == 0: continue
                yield command, names, value, kind, [command] + with_value(BASE[command], names, value, positional)


def tell(line, kind, found, err):
    words = " ".join(shown(word) if len(word) < 80 else word[:20] + "..." for word in line)
    print(f"{words} ({kind}): {'; '.join(found)}")
    for text in err.decode(errors="replace").splitlines()[:4]: print("    " + ascii(text[:300]), flush=True)


def main():
    todo, failed, lock, count = cases(), [], threading.Lock(), [0]

    def work(number):
        server = Server(number)
        while True:
            with lock:
                case = next(todo, None)
            if case is None: return
            command, names, value, kind, line = case
            result = server.run(line)
            wrong = server.tidy(line)
            found = problems(line, names, value if kind != "as it is" else "as it is", result, wrong)
            with lock:
                count[0] += 1
                if found: failed.append(line)
                if found: tell(line, kind, found, result[2])

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    if os.geteuid() == 0: print("skipped: unreadable files, which root can read")
    print(f"{count[0]} runs, {len(failed)} of them wrong")
    sys.exit(1 if failed or count[0] < 100 else 0)


main()
