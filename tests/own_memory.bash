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
  flock "$own_lock"
  export SHARDMARK_OWN_MEMORY=${own_group:-yes}
fi

# At the end of a script: a group can be removed when nothing is in it any more.
leave_own_memory() {
  [[ $SHARDMARK_OWN_MEMORY == /* ]] || return 0
  echo $$ 2>/dev/null >"$(dirname "$SHARDMARK_OWN_MEMORY")/cgroup.procs"
  rmdir "$SHARDMARK_OWN_MEMORY" 2>/dev/null || true
}
