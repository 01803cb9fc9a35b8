#!/usr/bin/env bash
# Checks jobs/Dockerfile and jobs/shardmark.def: Docker and Apptainer know all instructions and sections, all files
# exist, all shell lines parse, and both have the same steps. `tests/install/bare_root.sh container` tests whether they
# build, because there is no registry here.
set -euo pipefail
home=$(cd "$(dirname "$0")/../.." && pwd)
cd "$home"
python=$(command -v .venv/bin/python || command -v python3)
"$python" - <<'PYTHON'
import json, os, re, subprocess, sys

wrong = []
def parses(what, shell):
    said = subprocess.run(["sh", "-n"], input=shell, capture_output=True, text=True)
    if said.returncode: wrong.append(f"{what}: {said.stderr.strip()}")

# The instructions are from docs.docker.com/reference/dockerfile.
instructions = "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split()
text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", open("jobs/Dockerfile").read()))
docker = []
for line in filter(str.strip, text.splitlines()):
    word, _, rest = line.partition(" ")
    if word not in instructions: wrong.append(f"jobs/Dockerfile: no instruction '{word}'")
    if word == "COPY":
        for source in rest.split()[:-1]:
            if not os.path.exists(source): wrong.append(f"jobs/Dockerfile: COPY {source}: no such file")
    if word == "CMD" and not all(isinstance(item, str) for item in json.loads(rest)): wrong.append("jobs/Dockerfile: CMD is no list of strings")
    if word == "RUN":
        parses("jobs/Dockerfile: " + line, rest)
        docker.append(rest)
if not text.lstrip().startswith("FROM "): wrong.append("jobs/Dockerfile: does not begin with FROM")

# The sections are from apptainer.org/docs/user/latest/definition_files.html.
known = "arguments setup files environment post runscript startscript test labels help".split()
header, *parts = re.split(r"(?m)^%", re.sub(r"(?m)^#.*\n", "", open("jobs/shardmark.def").read()))
keys = dict(line.split(": ", 1) for line in header.split("\n") if line)
if set(keys) != {"Bootstrap", "From"}: wrong.append(f"jobs/shardmark.def: its header has {sorted(keys)}")
sections = {}
for part in parts:
    name, _, body = part.partition("\n")
    if name not in known: wrong.append(f"jobs/shardmark.def: no section '%{name}'")
    sections[name] = body
    if name == "files":
        for line in filter(None, map(str.strip, body.splitlines())):
            if not os.path.exists(line.split()[0]): wrong.append(f"jobs/shardmark.def: %files {line}: no such file")
    else:
        parses(f"jobs/shardmark.def: %{name}", body)

base = re.search(r"(?m)^FROM (\S+)", text)[1]
if keys.get("From") != base: wrong.append(f"the images differ in what they begin with: {base} and {keys.get('From')}")
for step in (step.strip() for line in docker for step in line.split("&&")):
    if not step.startswith("rm ") and step not in sections["post"]: wrong.append(f"jobs/shardmark.def: %post does not do '{step}', which jobs/Dockerfile does")
print("\n".join(wrong) or f"{len(docker)} steps and {len(sections)} sections: ok")
sys.exit(bool(wrong))
PYTHON
