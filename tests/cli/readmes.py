"""Checks every page of the repository: links, anchors, commands, printed blocks, lengths. See readmes.sh."""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
WRITE, WHY = "--write" in sys.argv, "--why" in sys.argv
LIMITS = {"README.md": 150}  # number of lines; LIMIT is for all other READMEs
LIMIT = 400
# Folders that do not belong to the project. The program writes FORMAT.md and COLUMNS.md, so only their links are
# checked.
FOREIGN = {".git", ".venv", "node_modules"}
LAUNCHERS = {"mpirun", "srun"}
# The names of the programs in pages: in a build, installed, and in a bundle.
NAMES = {"build/shardmark", "shardmark", "./shardmark", "build/shardmark-torch"}

problems, unchecked, num_commands, num_links = [], [], 0, 0


def problem(page, line, text):
    problems.append(f"{page}:{line}: {text}")


def program(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


# --- a page: its headings, its links, its commands --------------------------------------------------------------------


class Page:
    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().split("\n")
        self.kinds = list(self.kinds_of_lines())  # for each line: text or code

    def kinds_of_lines(self):
        fence, indented, blank = "", False, True
        for line in self.lines:
            mark = re.match(r"\s*(```+|~~~+)", line)
            if mark and (not fence or line.strip().startswith(fence)):
                fence = "" if fence else mark[1]
                yield "fence"
                blank = False
                continue
            # Below a blank line, four spaces begin code, except in a list.
            indented = not fence and line.startswith("    ") and (indented or blank)
            yield "code" if fence or indented else "text"
            blank = not line.strip()

    def text_lines(self):
        return [(n, line) for n, (line, kind) in enumerate(zip(self.lines, self.kinds), 1) if kind == "text"]

    def anchors(self):
        found, seen = set(), {}
        for _, line in self.text_lines():
            found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
            heading = re.match(r"#{1,6} +(.*?)(?: +#+)?$", line)
            if not heading:
                continue
            # Makes the anchor as GitHub does: removes markup, converts to lower case, removes everything but letters,
            # digits, spaces and hyphens, and replaces spaces by hyphens.
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            words = re.sub(r"[^\w\- ]", "", words.replace("`", "").lower()).replace(" ", "-")
            count = seen.get(words, 0)
            seen[words] = count + 1
            found.add(words if count == 0 else f"{words}-{count}")
        return found

    def links(self):
        for number, line in self.text_lines():
            line = re.sub(r"`[^`]*`(?!\])", "", line)
            for target in re.findall(r"\]\(([^)\s]+)\)", line) + re.findall(r'(?:src|href)="([^"]+)"', line):
                yield number, target
            reference = re.match(r"\[[^\]]+\]: +(\S+)", line)
            if reference:
                yield number, reference[1]

    def commands(self):
        """Lines of code, and code in text, that begin with a command; of several commands in a line each."""
        for number, (line, kind) in enumerate(zip(self.lines, self.kinds), 1):
            texts = [line.strip()] if kind == "code" else re.findall(r"`([^`]+)`", line) if kind == "text" else []
            for text in texts:
                text = re.sub(r"(^|\s)#\s.*", "", text).removeprefix("$ ").strip()
                first = text.split(" ")[0] if text else ""
                if re.match(r"\S+ \S", text) and (first in NAMES | LAUNCHERS | {"cmake", "make", "python3"} or (kind == "code" and is_script(first))):
                    yield number, text, kind


def is_script(word):
    return bool(re.fullmatch(r"(\./)?(jobs|tests|results|suites)/\S+\.(sh|py|awk|sbatch)|\.venv/bin/\S+", word))


# --- commands ---------------------------------------------------------------------------------------------------------

helps = {}


def help_of(command):
    if command not in helps:
        helps[command] = program(command, "--help-all").stdout if command else program("--help").stdout
    return helps[command]


def flags_of(command):
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", "\n".join(
        line.split("  ")[1] if line.startswith("  -") else "" for line in help_of(command).splitlines())))


def commands_of_program():
    return set(re.findall(r"^  ([a-z]+) ", help_of(""), re.M))


def plan_accepts(suite, flags):
    answer = program("plan", suite, *flags)
    return "" if answer.returncode == 0 else answer.stderr.strip()


def check_program(words):
    """The complaint about `command --flag value ...`, or nothing."""
    if words[0] == "COMMAND" or words[0].startswith("-"):
        return "" if words[0] in ("COMMAND", "--version", "--completion", "--help", "--help-all") else f"unknown flag {words[0]}"
    if words[0] == "help":
        return check_program(words[1:] or ["COMMAND"])
    command, rest = words[0], words[1:]
    started = [word for word in rest if word in ("collective", "train", "doctor")]
    if command == "launch" and started:  # launch -n 8 collective ...: what follows is that command's own
        at = rest.index(started[0])
        return check_program(["launch", *rest[:at]]) or check_program(rest[at:])
    if command not in commands_of_program():
        return f"unknown command '{command}'"
    behind = []
    if "--" in rest:
        at = rest.index("--")
        rest, behind = rest[:at], rest[at + 1:]
    for words_of, known in ((rest, command), (behind, "run")):
        for word in words_of:
            if re.match(r"--?[a-zA-Z]", word) and word.split("=")[0] not in flags_of(known):
                return f"{known} has no flag {word}"
    if command in ("plan", "run", "launch", "submit") and rest and not rest[0].startswith("-"):
        return check_suite(rest[0], rest[1:] + behind if command in ("plan", "run") else behind)
    for word in rest:  # studies and suites of this repository
        if re.match(r"(results/reference|tests|suites)/", word) and not re.search(r"[*?]", word):
            if not Path(word).exists() and not Path(word + ".journal").exists():
                return f"there is no {word}"
    return check_tables(command, rest)


def check_suite(suite, flags):
    if suite in ("SUITE", "...", "suites/x.yaml", "x.yaml", "layouts.yaml"):  # predict writes the last one
        return ""
    known = flags_of("plan") - {"--csv", "--json"}
    taken, keep = [], False
    for word in flags:  # the flags that plan accepts, with their values
        if re.match(r"--?[a-zA-Z]", word):
            keep = word.split("=")[0] in known
        if keep:
            taken.append(word)
    if any(word in ("...", "N") for word in taken):
        taken = []
    return plan_accepts(suite, taken)


def check_tables(command, words):
    if "--table" in words and command in ("report", "compare", "predict", "plan"):
        for word in words[words.index("--table") + 1:]:
            if word.startswith("-"):
                break
            if word != "NAME" and word not in tables():
                return f"there is no table {word}"
    return ""


# Returns the tables of all kinds of studies, whose columns are defined, and those of plan.
def tables():
    if len(known_tables) == len(ALWAYS):
        for of_columns in re.findall(r"^\| ([a-z_., ]+): ", Path("analysis/COLUMNS.md").read_text(), re.M):
            for key in of_columns.split(", "):
                known_tables.update({key, key.split(".")[0]})
        for listed in re.findall(r"--all: ([a-z_,\s]+)\.", program("plan", "quick").stdout):
            known_tables.update(re.split(r",\s+", listed))
    return known_tables


ALWAYS = {"impossible"}
known_tables = set(ALWAYS)


MAKEFILE = Path("Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
VARIABLES = set(re.findall(r"^([A-Z_]+) *\??=", MAKEFILE, re.M)) | {"ANALYSIS"}


PRESETS = {preset["name"] for preset in json.loads(Path("CMakePresets.json").read_text())["configurePresets"]}


def check_make(words):
    for word in words:
        name = word.split("=")[0]
        if "=" in word and name not in VARIABLES:
            return f"make has no variable {name}"
        if "=" not in word and name not in TARGETS:
            return f"make has no target {name}"
    for word in words:
        if word.startswith("SUITE=suites/") and not Path(word.removeprefix("SUITE=")).exists():
            return f"there is no {word.removeprefix('SUITE=')}"
    return ""


def check_command(text):
    """(complaint, reason why it is not checked)"""
    if "<" in text and ">" in text or "…" in text:
        return "", "has a placeholder"
    try:
        words = shlex.split(text.rstrip("\\").strip())
    except ValueError as error:
        return "", f"is no line of its own: {error}"
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    for separator in ("|", ">", "&&", ";", "2>", "||"):
        if separator in words:
            words = words[:words.index(separator)]
    if not words:
        return "", "nothing but settings"
    if words[0] in LAUNCHERS:
        at = [i for i, word in enumerate(words) if word in NAMES]
        if not at:
            return "", f"{words[0]} starts another program"
        words = words[at[0]:]
    if words[0] in NAMES:
        if any(word == "..." or re.fullmatch(r"\[.*", word) for word in words):
            return "", "is shortened by ..."
        return (check_program(words[1:]), "") if len(words) > 1 else ("", "")
    if words[0] == "make":
        return check_make([word for word in words[1:] if word not in ("...",)]), ""
    if words[0] == "cmake":
        presets = [words[i + 1] for i, word in enumerate(words) if word in ("--preset", "--build") and words[i + 1:]]
        unknown = [name for name in presets if "--preset" in words and name not in PRESETS and name != "--preset"]
        return f"there is no preset {unknown[0]}" if unknown else "", "" if "--preset" in words else "is not one of a preset"
    if words[0] == "python3" and len(words) > 1:
        words = words[1:]
    if is_script(words[0]):
        path = words[0]
        if path.startswith(".venv/"):
            path = words[1] if len(words) > 1 else ""
        if "*" in path or not path or path.startswith("-"):
            return "", "names no file"
        return ("" if Path(path).exists() else f"there is no {path}"), "" if Path(path).exists() else ""
    return "", "is no command of this project"


# --- blocks that the program printed ----------------------------------------------------------------------------------

OUTPUT = re.compile(r"<!-- output of: (?:build/)?shardmark (.*?)(?:; lines ([\d, -]+))? -->")


def printed(arguments, ranges):
    answer = program(*shlex.split(arguments))
    if answer.returncode not in (0, 4):  # status 4: compare cannot decide
        return None, answer.stderr.strip()
    lines = answer.stdout.rstrip("\n").split("\n")
    if ranges:
        parts = []
        for part in ranges.split(","):
            first, _, last = part.strip().partition("-")
            parts.append(lines[int(first) - 1:int(last or first)])
        lines = [line for i, part in enumerate(parts) for line in ((["..."] if i else []) + part)]
    return [line.rstrip() for line in lines], ""


def check_printed(page, write):
    changed = False
    at = 0
    while at < len(page.lines):
        mark = OUTPUT.fullmatch(page.lines[at].strip())
        at += 1
        if not mark:
            continue
        if at >= len(page.lines) or not page.lines[at].startswith("```"):
            problem(page.path, at, "no block follows what the program prints")
            continue
        end = page.lines.index("```", at + 1)
        now, complaint = printed(mark[1], mark[2])
        if now is None:
            problem(page.path, at, f"shardmark {mark[1]}: {complaint}")
        elif now != page.lines[at + 1:end]:
            if write:
                page.lines[at + 1:end] = now
                changed = True
            else:
                then = page.lines[at + 1:end]
                first = next((i for i, (a, b) in enumerate(zip(then, now)) if a != b), min(len(then), len(now)))
                problem(page.path, at + 2 + first, f"shardmark {mark[1]} prints something else (make readmes writes it): "
                        f"here '{(then + [''])[first]}', now '{(now + [''])[first]}'")
    if changed:
        page.path.write_text("\n".join(page.lines))
        page.kinds = list(page.kinds_of_lines())
        print(f"{page.path}: printed blocks written")


# Checks lines that a page repeats from another page: `<!-- lines of: results/README.md -->`.
def check_repeated(page):
    for number, line in enumerate(page.lines):
        mark = re.fullmatch(r"<!-- lines of: (\S+) -->", line.strip())
        if not mark:
            continue
        other = {text.strip() for text in Path(mark[1]).read_text().split("\n")}
        end = page.lines.index("```", number + 2)
        for n in range(number + 2, end):
            if page.lines[n].strip() not in other:
                problem(page.path, n + 1, f"this line is not in {mark[1]}")


# --- all of it --------------------------------------------------------------------------------------------------------


def check_links(pages):
    global num_links
    anchors = {page.path.resolve(): page.anchors() for page in pages}
    for page in pages:
        for number, target in page.links():
            if re.match(r"[a-z]+:", target):
                continue
            num_links += 1
            path, _, anchor = target.partition("#")
            file = (page.path.parent / path).resolve() if path else page.path.resolve()
            if not file.exists():
                problem(page.path, number, f"the link to {target} leads nowhere")
            elif anchor and anchor not in anchors.get(file, ()):
                problem(page.path, number, f"{path or page.path} has no heading for #{anchor}")


def check_commands(pages):
    global num_commands
    for page in pages:
        for number, text, kind in page.commands():
            num_commands += 1
            complaint, reason = check_command(text)
            if complaint:
                problem(page.path, number, f"`{text}`: {complaint}")
            elif reason:
                unchecked.append(f"{page.path}:{number}: {text}: {reason}")


def check_packages():
    """The list of Debian packages in jobs/README.md is that of jobs/bootstrap.sh."""
    wanted = subprocess.run(["jobs/bootstrap.sh", "--print"], capture_output=True, text=True, check=True).stdout.split()
    text = Path("jobs/README.md").read_text()
    block = re.search(r"<!-- packages -->\n```text\n(.*?)```", text, re.S)
    if not block or block[1].split() != wanted:
        problem("jobs/README.md", 1, f"its list of Debian packages is not: {' '.join(wanted)}")


def check_version():
    version = re.search(r"project\(shardmark VERSION ([\d.]+)", Path("CMakeLists.txt").read_text())[1]
    for page, pattern in (("README.md", rf"\*\*Version {re.escape(version)}\*\*"), ("CHANGELOG.md", rf"^## {re.escape(version)} ")):
        if Path(page).exists() and not re.search(pattern, Path(page).read_text(), re.M):
            problem(page, 1, f"does not name the version {version}")


# First checks the check itself: each of these lines violates one rule and comes with the expected complaint. Those in
# `right` violate none.
def check_the_checks():
    wrong = {
        "[a](nowhere.md)": "leads nowhere",
        "[a](#no-such-heading)": "has no heading for #no-such-heading",
        "[a][1] and\n\n[1]: README.md#away": "has no heading for #away",
        '<img src="missing.svg">': "leads nowhere",
        "`shardmark pln quick`": "unknown command 'pln'",
        "`build/shardmark report x.h5 --fast`": "report has no flag --fast",
        "`shardmark launch quick -n 2 -- --fast`": "run has no flag --fast",
        "`shardmark plan no-such-suite`": "no such suite",
        "`mpirun -n 2 shardmark run quick -o x.h5 --strategy fdsp`": "fdsp",
        "`shardmark report x.h5 --table strategy_table`": "there is no table strategy_table",
        "`make runn SUITE=suites/quick.yaml`": "make has no target runn",
        "`make run SUTE=suites/quick.yaml`": "make has no variable SUTE",
        "`cmake --preset fast`": "there is no preset fast",
        "    jobs/no_such.sh --now": "there is no jobs/no_such.sh",
        "```sh\nmpirun -n 2 shardmark train --model gpt2 --stpes 3\n```": "train has no flag --stpes",
        "<!-- output of: build/shardmark plan quick -n 2; lines 1 -->\n```text\nquick on 3 ranks\n```": "prints something else",
        "<!-- lines of: LICENSE -->\n```text\nBSD License\n```": "this line is not in LICENSE",
    }
    right = ("# A heading, `code` and [a link](README.md)\n[up](#a-heading-code-and-a-link)\n\n`shardmark plan quick -n 2 --strategy ddp fsdp`\n\n"
             "    build/shardmark submit --nodes 2 --gpus-per-node 8 scaling -- --ranks 8 16    # a comment\n"
             "    mpirun -n 4 --hostfile hosts build/shardmark doctor --pairs | tail\n    shardmark   16777216   3961.0\n")
    global unchecked, num_commands, num_links
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "README.md").write_text("# Here\n")
        page = Path(folder) / "page.md"
        for text, complaint in [*wrong.items(), (right, "")]:
            page.write_text("Text.\n\n" + text + "\n")
            problems.clear()
            check_page(Page(page), write=False)
            check_links([Page(page), Page(Path(folder) / "README.md")])
            check_commands([Page(page)])
            if not (any(complaint in found for found in problems) and len(problems) == 1 if complaint else not problems):
                sys.exit(f"FAILED: the check of pages says of {text!r}: {problems}, not '{complaint}'")
    problems.clear()
    unchecked, num_commands, num_links = [], 0, 0


def check_page(page, write):
    check_printed(page, write)
    check_repeated(page)


def main():
    check_the_checks()
    paths = sorted(path for path in Path(".").rglob("*.md")
                   if not FOREIGN & set(path.parts) and not path.parts[0].startswith("build") and "corpus" not in path.parts)
    pages = [Page(path) for path in paths]
    for page in pages:
        check_page(page, WRITE)
        limit = LIMITS.get(str(page.path), LIMIT)
        if page.path.name == "README.md" and len(page.lines) - 1 > limit:
            problem(page.path, limit, f"{len(page.lines) - 1} lines, at most {limit} are allowed")
    check_links(pages)
    check_commands(pages)
    check_packages()
    check_version()
    if WHY:
        print(*unchecked, sep="\n")
    if problems:
        print(*problems, sep="\n")
        print(f"FAILED: {len(problems)} problems on the pages")
        sys.exit(1)
    print(f"{len(pages)} pages: {num_links} links and {num_commands} commands, {len(unchecked)} of which are not checked (--why lists them)")


main()
