#!/usr/bin/env bash
# NEEDS torch
# Memory runs out at random moments, and the kernel kills the rank that allocates most. The ranks are in a memory cgroup
# whose limit is lowered to slightly more than what they hold. faults.bash defines what must hold after each fault.
# Needs root; otherwise it is skipped (77).
set -uo pipefail
# shellcheck source=tests/faults/faults.bash
source "$(dirname "$0")/faults.bash"

[[ $(id -u) == 0 ]] || skip "needs root, for a memory cgroup"
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
  group=/sys/fs/cgroup/shardmark$$ limit_file=memory.max swap_file=memory.swap.max events=memory.events
else
  group=/sys/fs/cgroup/memory/shardmark$$ limit_file=memory.limit_in_bytes swap_file=memory.swappiness events=memory.oom_control
fi
mkdir "$group" 2>/dev/null || skip "the kernel or container allows no cgroup of one's own"
remove_group() { within 120 rmdir "$group"; }
at_end+=(remove_group)
[[ -w $group/$limit_file ]] || skip "no memory controller for cgroups of one's own"
echo 0 >"$group/$swap_file" 2>/dev/null
# shellcheck disable=SC2016
prefix=(sh -c 'echo $$ >"$0"/cgroup.procs && exec "$@"' "$group")

# The suite has small points, and four that need about 600 MB more.
cat >"$suite" <<'TEXT'
name: sweep
ranks: [1, 2]
repeats: 2
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3, time_limit: 5}
training:
  - model: {mlp: {features: 8, width: 512, layers: 4}}
    strategy: [ddp, fsdp, zero3]
    batch_size: [2, 4]
collectives:
  - operation: [all_reduce, broadcast]
    ranks: 2
    bytes: 256MiB
TEXT
points=28

killed() { sed -n 's/^oom_kill //p' "$group/$events"; }
held_bytes() { awk '$1 ~ /^(total_rss|total_shmem|anon|shmem)$/ {sum += $2} END {printf "%d", sum}' "$group/memory.stat"; }
no_limit() { if [[ $limit_file == memory.max ]]; then echo max; else echo -1; fi; }

# Lowers the limit. The kernel refuses a limit that the ranks have already exceeded, so this is tried several times.
limit_memory() {
  local i
  for i in 1 2 3 4 5; do
    random 200
    if echo $(($(held_bytes) + (chosen + 100) * 1048576)) 2>/dev/null >"$group/$limit_file"; then return 0; fi
  done
  return 1
}

# Fails if no rank was killed, because the rest of the sweep needed no more memory.
fault_take_the_memory() {
  local before
  # With a limit from the start, no rank could ever start again, and launch would have to give up.
  if [[ $via == launch ]]; then wait_for 300 "a finished point" enough_records 1; fi
  before=$(killed)
  bad_take_the_memory=()
  limit_memory || return 1
  end_of_job 600
  # Memory stays short, so launch gives up. Ranks that start under the limit respect it, and none is killed.
  if [[ $via == launch || $(killed) == "$before" ]]; then bad_take_the_memory=(--bad out_of_memory); fi
  [[ $(killed) -gt $before ]]
}
after_take_the_memory() { no_limit >"$group/$limit_file"; }
survivable=(take_the_memory)

strike_all take_the_memory
