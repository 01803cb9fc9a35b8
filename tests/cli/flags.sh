#!/usr/bin/env bash
# Runs flags.py, which gives every flag of every command all kinds of bad values. Also tests words that are not
# commands.
set -euo pipefail
program=$1
home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# refused TEXT ARGUMENT...: status 2, and one line on stderr that contains the text.
refused() {
  local text=$1 status=0
  shift
  "$program" "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [[ $status == 2 && $(wc -l <"$dir/err") == 1 ]] || fail "$*: status $status: $(cat "$dir/err")"
  grep -qF -- "$text" "$dir/err" || fail "$*: '$text' is not in: $(cat "$dir/err")"
}
refused "unknown command 'pln'; did you mean 'plan'?" pln suites/quick.yaml
refused "unknown command 'x\\x1b[31m'" $'x\x1b[31m'
refused "unknown flag '--fast'" --fast

c++ -shared -fPIC -O1 -std=c++20 "$home/tests/fork_server.cpp" -o "$dir/fork_server.so" -ldl || fail "the fork server does not compile"
python3=$home/.venv/bin/python3
[[ -x $python3 ]] || python3=python3
"$python3" "$home/tests/cli/flags.py" "$program" "$dir/fork_server.so" "$dir"
