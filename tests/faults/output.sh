#!/usr/bin/env bash
# NEEDS torch
# The disk of the study fails at random moments: it is full, broken, or read-only when the study is resumed. faults.bash
# defines what must hold after each fault. Mounts need root, or a kernel that allows mount namespaces for users;
# otherwise the test is skipped (77).
set -uo pipefail
if [[ -z ${OWN_MOUNTS:-} ]]; then    # the mounts end with the script
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

# tells_why TEXT: the run has failed, and one of our lines gives this reason.
tells_why() {
  [[ $landed == yes ]] || return 0
  [[ $status != 0 ]] || fail "$kind: exit status 0"
  [[ $(grep -c "$1" "$log") == 1 ]] || fail "$kind: not one line that says '$1': $(cat "$log")"
}

mount_memory() { mount -t tmpfs -o size=8m tmpfs "$disk" && mkdir "$out"; }

# The disk is full except for some KiB or completely. So any write may fail, also one of the published file.
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

# The disk becomes read-only between two runs. It cannot become so while a journal is being written.
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

# A file system that finds an error in itself becomes read-only during the job. Then it is repaired.
before_break_the_disk() {
  truncate -s 16M "$dir/image"
  mkfs.ext4 -q -F "$dir/image"
  mount -o loop,errors=remount-ro "$dir/image" "$disk" && mkdir "$out" && sync -f "$out"    # sync, or an early error would remove the folder
}
fault_break_the_disk() {
  # The sync of the last record may not have returned yet.
  [[ $(tail -n 1 "$dir/before.journal") != *'"record":'* ]] || sed -i '$d' "$dir/before.journal"
  mount -o remount,abort "$disk"
  end_of_job 300
  [[ $status != 0 || ! -e $study || -e $study.journal ]]    # or everything had been written by then
}
after_break_the_disk() {
  tells_why 'Read-only file system\|Input/output error'   # the kernel reports one or the other first
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
