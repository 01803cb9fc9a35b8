#!/usr/bin/env bash
# NEEDS torch
# The place of the study breaks at random moments: full, broken, or read-only when the study is to go on. See faults.bash
# for what must hold after each. Mounts need root, or a kernel that lets users have a mount namespace; skipped (77) without.
set -uo pipefail
if [[ -z ${OWN_MOUNTS:-} ]]; then    # which end with the script
  as=()
  if [[ $(id -u) != 0 ]]; then as=(--map-root-user); fi
  unshare "${as[@]}" --mount mount -t tmpfs tmpfs /mnt 2>/dev/null ||
    { echo "skipped: the kernel or container allows no mounts of one's own"; exit 77; }
  OWN_MOUNTS=1 exec unshare "${as[@]}" --mount bash "$0" "$@"
fi
# shellcheck source=tests/faults/faults.bash
source "$(dirname "$0")/faults.bash"
disk=$dir/disk
mkdir "$disk"
out=$disk/out
study=$out/x.h5
unmount() { umount --lazy "$disk"; }
at_end+=(unmount)

# tells_why TEXT: one line of ours says it, and the run has failed.
tells_why() {
  [[ $landed == yes ]] || return 0
  [[ $status != 0 ]] || fail "$kind: exit status 0"
  [[ $(grep -c "$1" "$log") == 1 ]] || fail "$kind: not one line that says '$1': $(cat "$log")"
}

mount_memory() { mount -t tmpfs -o size=8m tmpfs "$disk" && mkdir "$out"; }

# Full but for some KiB, so that it may be any write that fails, also one of the published file; or none at all.
before_fill_the_disk() { mount_memory; }
fault_fill_the_disk() {
  cat /dev/zero >"$disk/filler" 2>/dev/null
  random 400
  truncate -s "-${chosen}K" "$disk/filler"
  end_of_job 300
  [[ $status != 0 ]]
}
after_fill_the_disk() {
  tells_why 'No space left on device'
  rm "$disk/filler"
}

# Read-only between two runs: a journal that is being written would not let the disk become so.
before_write_protect() { mount_memory; }
fault_write_protect() {
  kill -TERM "$job"
  end_of_job 120
  wait_for 30 "a read-only disk" mount -o remount,ro "$disk"
  start
}
after_write_protect() {
  tells_why 'Read-only file system'
  mount -o remount,rw "$disk"
}

# A file system that meets an error in itself becomes read-only under the running job; then it is repaired.
before_break_the_disk() {
  truncate -s 16M "$dir/image"
  mkfs.ext4 -q -F "$dir/image"
  mount -o loop,errors=remount-ro "$dir/image" "$disk" && mkdir "$out" && sync -f "$out"    # or an early error takes it away
}
fault_break_the_disk() {
  # The sync of a record that is the last line may not have returned.
  [[ $(tail -n 1 "$dir/before.journal") != *'"record":'* ]] || sed -i '$d' "$dir/before.journal"
  mount -o remount,abort "$disk"
  end_of_job 300
  [[ $status != 0 || ! -e $study || -e $study.journal ]]    # or all was written by then
}
after_break_the_disk() {
  tells_why 'Read-only file system\|Input/output error'   # whichever the kernel says first
  umount "$disk"
  e2fsck -fp "$dir/image" >"$dir/fsck.log" 2>&1
  mount -o loop "$dir/image" "$disk"
  check_kept
}

for kind in fill_the_disk write_protect break_the_disk; do
  wanted "$kind" || continue
  if "before_$kind" 2>"$dir/mount.log"; then
    strike "$kind"
    umount "$disk"
  else
    echo "$kind: left out: $(tail -n 1 "$dir/mount.log")"
  fi
done
