#!/usr/bin/env bash
# NEEDS torch
# A GPU is lost during a point, with CUDA's error message (lost_gpu.cpp is preloaded, and ranks are CPU ranks). The job
# ends at once with one line and status 3. Under launch, the point is tried once more in a new job, and the other points
# are measured.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
c++ -shared -fPIC -O1 -std=c++20 "$home/tests/cli/lost_gpu.cpp" -o lose.so -ldl

cat >suites/tiny.yaml <<'Y'
name: tiny
ranks: [2]
sampling: {warmup_steps: 1, min_steps: 3, max_steps: 3}
training:
  - model: {mlp: {features: 8, width: 16, layers: 3}}
    strategy: [ddp, fsdp, zero3]
    batch_size: 2
Y
as_root=()
if [[ $(id -u) == 0 ]]; then as_root=(--allow-run-as-root); fi
preload=(-x "LD_PRELOAD=$dir/lose.so" -x "SHARDMARK_LOSE_GPU=$dir/there")

touch there
runs timeout 600 mpirun "${as_root[@]}" --oversubscribe --bind-to none "${preload[@]}" -n 2 "$program" run suites/tiny.yaml -o run.h5
ends 3; has "failed: rank 1 on" "CUDA error: unspecified launch failure; on that node" "dmesg | grep -i xid"
[[ $(grep -c 'has lost' <<<"$said") == 1 ]] || fail "not one line"
[[ ! -e there && -e run.h5.journal ]] || fail "nothing was lost, or no journal is left"

touch there
runs timeout 600 "$program" launch suites/tiny.yaml -n 2 --launcher-flag=--oversubscribe \
  --launcher-flag=-x --launcher-flag="LD_PRELOAD=$dir/lose.so" \
  --launcher-flag=-x --launcher-flag="SHARDMARK_LOSE_GPU=$dir/there" -o launched.h5
ends 0; has "has lost its device" "it is tried once more" "first attempt failed: failed: rank 1 on"
"$program" report launched.h5 --raw --json | python3 -c '
import json, sys
points = json.load(sys.stdin)["points"]
assert [p["outcome"] for p in points] == ["ok"] * 3, points
assert sorted(p["attempts"] for p in points) == [1, 1, 2], points'
echo "lost_gpu: ok"
