# What the scripts of faults/ and cluster/ share, to be sourced: words to end with, a scratch folder, waiting, and an
# end that leaves nothing behind.
if declare -F finish >/dev/null; then return; fi

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
# shellcheck source=tests/waiting.bash
source "$(dirname "${BASH_SOURCE[0]}")/waiting.bash"

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$home/.venv/bin/python
dir=$(mktemp -d)
mkdir "$dir/tmp"
export TMPDIR=$dir/tmp         # Open MPI's session folders too: what is left there was left behind
pids=()                        # of what runs beside the script, ended with it
at_end=()                      # functions that undo what the script did, the latest first

finish() {
  local status=$? i
  trap - EXIT
  if [[ $status != 0 && $status != 77 ]]; then tail -n 15 "$dir"/*.log 2>/dev/null || true; fi
  exec 2>/dev/null    # bash would announce every process that is killed
  set +e
  for pid in "${pids[@]}"; do kill -KILL "$pid"; done
  for ((i = ${#at_end[@]} - 1; i >= 0; --i)); do "${at_end[i]}"; done
  wait
  rm -rf "$dir"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Processes with this NAME=VALUE in their environment; also those on other nodes, which this machine sees.
marked() { grep -lszx -- "$1" /proc/[0-9]*/environ | cut -d/ -f3; }
none_marked() { [[ -z $(marked "$1") ]]; }
