# Sourced by the tests of one command, which are named after it and get the program as $1. They run in a temporary
# directory with a copy of the studies of tests/data/studies.
shardmark=$1
command=$(basename "$0" .sh)
data=$(cd "$(dirname "$0")/../data/studies" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$data"/* .

fail() { echo "FAILED: $*"; exit 1; }

# can_use COMMAND: fails and prints that a part of the test is left out if this machine lacks the command.
can_use() { command -v "$1" >/dev/null || { echo "left out: what needs $1, which is not here"; return 1; }; }

# has FILE TEXT...: the file contains each of the texts.
has() {
  local file=$1 text
  shift
  for text in "$@"; do grep -qF -- "$text" "$file" || fail "'$text' is not in: $(cat "$file")"; done
}

# refuses TEXT ARGUMENT...: the program prints one line with the text on stderr, nothing on stdout, and exits with
# status 2.
refuses() {
  local text=$1 status=0
  shift
  "$shardmark" "$command" "$@" >out 2>err || status=$?
  [[ $status == 2 ]] || fail "$command $*: exit status $status instead of 2: $(cat out err)"
  [[ $(wc -l <err) == 1 ]] || fail "$command $*: not one line: $(cat err)"
  [[ ! -s out ]] || fail "$command $*: wrote to stdout: $(cat out)"
  has err "$text"
}

# is_narrow FILE: no line is too wide for a usual terminal.
is_narrow() {
  [[ -z $(awk 'length > 135' "$1") ]] || fail "lines of more than 135 columns: $(awk 'length > 135' "$1")"
}
