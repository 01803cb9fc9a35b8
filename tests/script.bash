# Sourced by the scripts of faults/ and cluster/. Provides skip and fail, a scratch folder, waiting, and an exit handler
# that leaves nothing behind.
if declare -F finish >/dev/null; then return; fi

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
# shellcheck source=tests/waiting.bash
source "$(dirname "${BASH_SOURCE[0]}")/waiting.bash"

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$home/.venv/bin/python
dir=$(mktemp -d)
mkdir "$dir/tmp"
export TMPDIR=$dir/tmp         # includes Open MPI's session folders, so files left there are found
pids=()                        # processes in the background, which are ended with the script
at_end=()                      # functions that undo what the script did, called in reverse order

finish() {
  local status=$? i
  trap - EXIT
  if [[ $status != 0 && $status != 77 ]]; then tail -n 15 "$dir"/*.log 2>/dev/null || true; fi
  exec 2>/dev/null    # bash would print a message for every killed process
  set +e
  for pid in "${pids[@]}"; do kill -KILL "$pid"; done
  for ((i = ${#at_end[@]} - 1; i >= 0; --i)); do "${at_end[i]}"; done
  wait
  rm -rf "$dir"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Prints processes with this NAME=VALUE in their environment, including those on other nodes, which this machine sees.
marked() { grep -lszx -- "$1" /proc/[0-9]*/environ | cut -d/ -f3; }
none_marked() { [[ -z $(marked "$1") ]]; }
