#!/usr/bin/env bash
# NEEDS torch
# On a disk of a set rate, checkpoints are written and read as fast as fio writes and reads, within 5 %. The disk is a
# loop device, whose rate the kernel holds (blkio); it is so slow that computing does not count. Its blocks are in
# memory: on the machine's own disk, what others write would hold up each of its flushes.
set -euo pipefail
program=$(realpath "${1:?usage: tests/cluster/storage.sh path/to/shardmark}")
# shellcheck source=tests/script.bash
source "$(dirname "$0")/../script.bash"

[[ $(id -u) == 0 ]] || skip "needs root, for a disk of its own"
for name in fio losetup mkfs.ext4; do
  command -v $name >/dev/null || skip "no $name: run jobs/bootstrap.sh --cluster"
done
throttle=/sys/fs/cgroup/blkio/blkio.throttle
[[ -w ${throttle}.write_bps_device ]] || skip "the kernel sets no rates of disks here (blkio of control groups, version 1)"

rate=$((2 << 20))
mkdir "$dir/memory"
mount -t tmpfs -o size=256m tmpfs "$dir/memory" 2>/dev/null || skip "the container mounts no memory"
remove_memory() { umount "$dir/memory"; }
at_end+=(remove_memory)
truncate -s 200M "$dir/memory/disk.img"
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$dir/memory/disk.img"    # nothing is written later
loop=$(losetup -f --show "$dir/memory/disk.img" 2>/dev/null) || skip "the container allows no loop device"
number=$(cat "/sys/block/${loop#/dev/}/dev")
set_rate() {
  local what
  for what in write_bps_device read_bps_device; do echo "$number $1" >"${throttle}.$what"; done
}
mkdir "$dir/disk"
remove_disk() {
  set_rate 0
  umount "$dir/disk"
  losetup -d "$loop"
}
at_end+=(remove_disk)
mount "$loop" "$dir/disk" 2>/dev/null || skip "the container mounts no disk"
set_rate $rate

# What else runs on the machine must not count either: ranks and fio come before it.
first=()
nice -n -20 true 2>/dev/null && [[ $(nice -n -20 nice) == -20 ]] && first=(nice -n -20)

cat >"$dir/storage.yaml" <<Y
name: storage
sampling: {warmup_steps: 1, min_steps: 1, max_steps: 1, time_limit: 1}    # one checkpoint of 6 s
training:
  - model: {mlp: {features: 512, width: 2048, layers: 2, classes: 10}}
    strategy: fsdp
    optimizer: adamw
    batch_size: 2
    save: ["full(folder=$dir/disk)", "sharded(folder=$dir/disk)"]
Y
fio_rate() {  # fio_rate write|read FILES BYTES: bytes/s
  if [[ $1 == read ]]; then sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true; fi
  "${first[@]}" fio --name="files$2" --directory="$dir/disk" --rw="$1" --bs=1M --size=$(($3 / $2)) --numjobs="$2" --end_fsync=1 --group_reporting \
    --output-format=json 2>/dev/null | "$python" -c 'import json, sys; j = json.load(sys.stdin)["jobs"][0]; print(max(j["read"]["bw_bytes"], j["write"]["bw_bytes"]))'
}

# One measurement of both programs. A form and a direction whose rates are within 5 % are noted in the file.
compare() {
  rm -f "$dir"/x.h5*
  "${first[@]}" mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$program" run "$dir/storage.yaml" -o "$dir/x.h5" --quiet >"$dir/run.log" 2>&1 || fail "the suite"
  "$program" report "$dir/x.h5" --raw --json >"$dir/x.json"
  # The same bytes in one file and in two.
  local bytes files
  read -r bytes <<<"$("$python" -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["points"][0]["checkpoint_bytes"]))' "$dir/x.json")"
  for files in 1 2; do
    echo "$(fio_rate write $files "$bytes") $(fio_rate read $files "$bytes")"
    rm -f "$dir"/disk/files*
  done >"$dir/fio.txt"
  "$python" - "$dir" <<'P'
import json, statistics, sys
folder = sys.argv[1]
points = {p["save"].split("(")[0]: p for p in json.load(open(folder + "/x.json"))["points"]}
series = lambda p, name: statistics.median(p["samples"][name][0])
with open(folder + "/fio.txt") as file:
    fio = dict(zip(("full", "sharded"), ([float(v) for v in line.split()] for line in file)))
for form, p in points.items():
    for name, rate in zip(("checkpoint_write", "checkpoint_read"), fio[form]):
        ours = p["checkpoint_bytes"] / series(p, name)
        print(f"{form} {name}: {ours / 1e6:.2f} MB/s, fio {rate / 1e6:.2f}, ratio {ours / rate:.3f}")
        if 0.95 < ours / rate < 1.05:
            with open(folder + "/equal", "a") as equal:
                print(form, name, file=equal)
P
}
# What else runs on the machine can hold up either program once, and not each time.
touch "$dir/equal"
for _ in 1 2 3; do
  compare
  [[ $(sort -u "$dir/equal" | wc -l) != 4 ]] || break
done
[[ $(sort -u "$dir/equal" | wc -l) == 4 ]] || fail "in three measurements only these were within 5 %: $(sort -u "$dir/equal" | paste -sd,)"
echo "storage: ok"
