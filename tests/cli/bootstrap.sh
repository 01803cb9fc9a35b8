#!/usr/bin/env bash
# Tests the messages of jobs/bootstrap.sh if something is missing: other systems, no permissions, no venv, no network.
# Nothing is installed, because all commands that would do so are replaced by stand-ins.
set -euo pipefail
unset MAKELEVEL  # bootstrap prints less if make calls it

home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin" "$dir/jobs"
cp "$home"/jobs/bootstrap.sh "$home"/jobs/requirements*.txt "$dir/jobs"
cd "$dir"
system=$(cat /usr/bin/{dpkg-query,apt-get,id} 2>/dev/null | sha256sum)

# answers NAME 'SHELL CODE': makes a command of that name for the next case. An existing entry is a link to the system's
# command. It is removed first, because otherwise the file behind it would be overwritten.
answers() { rm -f "bin/$1"; printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
# without NAME...: makes a PATH that lacks these commands.
without() {
  rm -rf bin && mkdir bin
  ln -s /usr/bin/* bin/
  for name in "$@"; do rm -f "bin/$name"; done
}

# expect WHAT STATUS TEXT...: bootstrap exits with that status and prints each of the texts.
expect() {
  local what=$1 want=$2 said status=0
  shift 2
  said=$(PATH=$dir/bin PYTHON=python3 bash jobs/bootstrap.sh --analysis 2>&1) || status=$?
  [[ $status == "$want" ]] || { echo "FAILED: $what: exit status $status instead of $want: $said"; exit 1; }
  for text in "$@"; do
    [[ $said == *"$text"* ]] || { echo "FAILED: $what: '$text' is not in: $said"; exit 1; }
  done
  echo "$what: ok"
}

all_installed='shift 3; for name in "$@"; do echo "$name installed"; done'
none_installed='exit 1'
fake_python='case "$*" in
  *version_info*) exit ${OLD:-0} ;; --version) echo Python 3.9.2 ;; *ensurepip*) exit ${NO_VENV:-0} ;;
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  *freeze*) ;; *"pip install"*) exit ${NO_NETWORK:-0} ;;
esac'

without dpkg-query cmake
expect "not Debian, cmake missing" 1 "neither Debian nor Ubuntu" "are missing: cmake" "libhdf5-dev"

without id sudo
answers dpkg-query "$none_installed"
answers id 'echo 1000'
expect "no rights" 1 "neither root nor may it use sudo" "apt-get install" "libyaml-cpp-dev"

without apt-get id
answers id 'echo 0'
answers dpkg-query "$none_installed"
answers apt-get 'echo "E: Unable to locate package libcli11-dev"; exit 100'
expect "no package found" 1 "E: Unable to locate package libcli11-dev" "universe" "no network"

without python3
answers dpkg-query "$all_installed"
expect "no Python" 1 "no 'python3'"
answers python3 "$fake_python"
OLD=1 expect "old Python" 1 "Python 3.9.2 is too old" "3.11"
NO_VENV=1 expect "Python without venv" 1 "install python3-venv"
NO_NETWORK=1 expect "no network" 1 "pip could not install" "https_proxy"
[[ -e .venv/shardmark-unfinished ]] || { echo "FAILED: an unfinished .venv is not marked"; exit 1; }
expect "after an interruption" 0 "was interrupted: starting afresh" "making .venv"

# Nothing is left to do: bootstrap prints only the last line and does not call pip.
answers python3 'echo "python was called"; exit 1'
cp bin/python3 .venv/bin/python
expect "second call" 0 "all that is needed is there"
said=$(PATH=$dir/bin bash jobs/bootstrap.sh --analysis)
[[ $(wc -l <<<"$said") == 1 && $said != *called* ]] || { echo "FAILED: a second call does work: $said"; exit 1; }

# The requirements have changed, so the installation is updated.
answers python3 "$fake_python"
cp bin/python3 .venv/bin/python
echo 'numpy==2.4.5' >>jobs/requirements-analysis.txt
expect "new requirements" 0 "making .venv"

# --meanwhile: the command runs while pip does, is waited for, ends where pip fails, and is not called where nothing is missing.
# This pip ends only after the command has begun.
answers python3 "${fake_python/'*"pip install"*)'/'*"pip install"*) until [[ -s began ]]; do sleep 0.1; done;'}"
cp bin/python3 .venv/bin/python
meanwhile() { PATH=$dir/bin bash jobs/bootstrap.sh --analysis --meanwhile "$1" >said 2>&1; }
echo 'h5py==3.16.0' >>jobs/requirements-analysis.txt
NO_NETWORK=1 meanwhile 'echo $$ >began; exec sleep 1000' && { echo "FAILED: pip failed, bootstrap did not: $(cat said)"; exit 1; }
for ((i = 0; i < 600; ++i)); do kill -0 "$(cat began)" 2>/dev/null || break; sleep 0.1; done
! kill -0 "$(cat began)" 2>/dev/null || { echo "FAILED: the command goes on after pip has failed"; exit 1; }
rm began
meanwhile 'echo yes >began; sleep 0.5; echo yes >ended' && [[ -e ended ]] || { echo "FAILED: the command was not waited for: $(cat said)"; exit 1; }
meanwhile 'echo yes >again' && [[ ! -e again ]] || { echo "FAILED: nothing was missing, but the command ran: $(cat said)"; exit 1; }
echo "meanwhile: ok"

[[ $(cat /usr/bin/{dpkg-query,apt-get,id} 2>/dev/null | sha256sum) == "$system" ]] || { echo "FAILED: a command of the system was changed"; exit 1; }
