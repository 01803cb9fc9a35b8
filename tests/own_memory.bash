# Sourced first by scripts that look for what is left in shared memory, or whose runs say whether the kernel killed a
# rank for want of memory. As root, the script starts again in a mount namespace with a /dev/shm of its own and in a
# memory cgroup of its own, so it sees nothing of what runs beside it. Elsewhere such scripts wait for each other.
if [[ -z ${SHARDMARK_OWN_MEMORY:-} ]]; then
  own_group=
  if [[ $(id -u) == 0 ]]; then
    for own_parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
      [[ -e $own_parent/cgroup.procs ]] || continue
      own_group=$own_parent/shardmark-test-$$
      if mkdir "$own_group" 2>/dev/null; then
        if echo $$ 2>/dev/null >"$own_group/cgroup.procs"; then break; fi
        rmdir "$own_group"
      fi
      own_group=
    done
    if unshare --mount mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
      # shellcheck disable=SC2016
      SHARDMARK_OWN_MEMORY=${own_group:-yes} exec unshare --mount bash -c 'mount -t tmpfs tmpfs /dev/shm && exec bash "$0" "$@"' \
        "$(realpath "$0")" "$@"
    fi
  fi
  exec {own_lock}>"/tmp/shardmark-shared-memory-$(id -u).lock"
  flock -w 1500 "$own_lock" || { echo "FAILED: another script has held /tmp/shardmark-shared-memory-$(id -u).lock for 1500 s"; exit 1; }
  export SHARDMARK_OWN_MEMORY=${own_group:-yes}
fi

# At the end of a script. A group can be removed when nothing is in it: what ends with the script goes to the parent, and
# killed processes take a moment.
leave_own_memory() {
  local turn pid parent
  [[ $SHARDMARK_OWN_MEMORY == /* ]] || return 0
  parent=$(dirname "$SHARDMARK_OWN_MEMORY")
  for turn in {1..50}; do
    while read -r pid; do echo "$pid" 2>/dev/null >"$parent/cgroup.procs" || true; done <"$SHARDMARK_OWN_MEMORY/cgroup.procs"
    if rmdir "$SHARDMARK_OWN_MEMORY" 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  return 0
}
