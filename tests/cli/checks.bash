# For tests of one command, to be sourced: they are named after it, get the program as $1, and run in a directory of their
# own that holds the studies of tests/data/studies.
shardmark=$1
command=$(basename "$0" .sh)
data=$(cd "$(dirname "$0")/../data/studies" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$data"/* .

fail() { echo "FAILED: $*"; exit 1; }

# can_use COMMAND: what needs a command that this machine does not have is left out, and that is said.
can_use() { command -v "$1" >/dev/null || { echo "left out: what needs $1, which is not here"; return 1; }; }

# has FILE TEXT...: each text is in it.
has() {
  local file=$1 text
  shift
  for text in "$@"; do grep -qF -- "$text" "$file" || fail "'$text' is not in: $(cat "$file")"; done
}

# refuses TEXT ARGUMENT...: one line on stderr that holds the text, nothing on stdout, exit status 2.
refuses() {
  local text=$1 status=0
  shift
  "$shardmark" "$command" "$@" >out 2>err || status=$?
  [[ $status == 2 ]] || fail "$command $*: exit status $status instead of 2: $(cat out err)"
  [[ $(wc -l <err) == 1 ]] || fail "$command $*: not one line: $(cat err)"
  [[ ! -s out ]] || fail "$command $*: wrote to stdout: $(cat out)"
  has err "$text"
}

# is_narrow FILE: no line is wider than a terminal should have to be.
is_narrow() {
  ! awk 'length > 135' "$1" | grep -q . || fail "lines of more than 135 columns: $(awk 'length > 135' "$1")"
}
