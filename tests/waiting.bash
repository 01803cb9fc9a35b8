# How scripts wait for something, to be sourced. No wait is a fixed time: on a busy machine everything comes, only later.

# within SECONDS COMMAND...: whether the command succeeds before they are over.
within() {
  local limit=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $limit ]] || return 1
    sleep "${PAUSE:-0.2}"
  done
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds; the test fails where it does not. The sourcing script has fail().
wait_for() { within "$1" "${@:3}" || fail "waited too long for $2"; }
