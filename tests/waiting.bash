# Waiting, to be sourced by scripts. They never sleep for a fixed time, because on a busy machine everything takes
# longer.

# within SECONDS COMMAND...: whether the command succeeds within this time.
within() {
  local limit=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $limit ]] || return 1
    sleep "${PAUSE:-0.2}"
  done
}

# wait_for SECONDS WHAT COMMAND...: waits until the command succeeds, else the test fails. The sourcing script must
# define fail().
wait_for() { within "$1" "${@:3}" || fail "waited too long for $2"; }
