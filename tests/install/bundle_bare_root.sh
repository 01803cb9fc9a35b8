#!/usr/bin/env bash
# Runs the bundle of jobs/bundle.sh on a bare machine: a root made by debootstrap with only python3 and the torch wheel,
# without network and compiler. Runs the program, a quick suite on two ranks and the GPU tests, which skip.
# usage: tests/install/bundle_bare_root.sh path/to/shardmark [SUITE]    (default: quick; ten minutes, 1 GB in TMPDIR)
# shellcheck disable=SC2016  # what is in single quotes expands in the bare root
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }

suite=${2:-quick}
[[ $(id -u) == 0 ]] || skip "a bare root is made by root only"
command -v debootstrap >/dev/null || skip "debootstrap is missing: apt-get install debootstrap"
command -v patchelf >/dev/null || skip "patchelf is missing: jobs/bootstrap.sh --bundle installs it"
command -v ip >/dev/null || skip "iproute2 is missing: jobs/bootstrap.sh --cluster installs it"
[[ -e /etc/debian_version ]] || skip "the mirror is taken from this machine's sources of apt, and it is neither Debian nor Ubuntu"
unshare --mount --net true 2>/dev/null || skip "this machine lets nobody make mounts"
# The mounts are in a separate mount namespace, so they disappear with this process, however it ends.
[[ ${BARE_ROOT_UNSHARED:-} ]] || BARE_ROOT_UNSHARED=1 exec unshare --mount --propagation private "$0" "$@"

mirror=$(grep -hoE '^(deb|URIs:)( \[.*\])? +https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
  grep -oE 'https?://[^ ]+' | sed -n 1p || true)
[[ $mirror ]] || skip "no mirror is in this machine's sources of apt"
site=$(echo "$(realpath .venv)"/lib/python3*/site-packages)
[[ -e $site/torch/version.py ]] || skip "no torch in .venv"
# shellcheck source=/dev/null
. /etc/os-release
root=$(mktemp -d)
at_end() {
  for folder in proc sys dev opt/torch; do umount -l "$root/$folder" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap at_end EXIT
trap 'exit 130' INT TERM
debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib "$VERSION_CODENAME" "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -n 5 "$root.log"; rm -f "$root.log"; skip "debootstrap got no base system from $mirror (its last lines are above)"; }
rm -f "$root.log"

XZ_OPT=${XZ_OPT:--1} jobs/bundle.sh "$root/bundle.tar.xz"
mkdir -p "$root/opt/torch" "$root/on a node"
tar -C "$root/on a node" -xf "$root/bundle.tar.xz"
mount --bind "$site" "$root/opt/torch"
mount -o remount,bind,ro "$root/opt/torch"
for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done

# in_root WHAT SHELL: runs the commands in the folder of the bundle, without network except loopback and without
# variables of this machine.
in_root() {
  local start=$SECONDS status=0
  unshare --net sh -c 'ip link set lo up && exec "$@"' - chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONPATH=/opt/torch \
    bash -c "cd '/on a node/bundle' && $2" || status=$?
  [[ $status == 0 ]] || fail "$1 on a bare $PRETTY_NAME: exit status $status after $((SECONDS - start)) s"
  echo "$1 on a bare $PRETTY_NAME: ok, $((SECONDS - start)) s"
}
in_root 'no compiler, no MPI, no CUDA' '! command -v gcc mpirun nvcc ip'
in_root './shardmark list' './shardmark list >/dev/null'
# The suite trains on a text of this repository. The bundle's README stands in for it.
in_root 'a suite on two ranks' "cp README.md /tmp/ && cd /tmp && '/on a node/bundle/shardmark' launch $suite -n 2 --report -o study.h5 -- --steps 3"
in_root 'the GPU tests' 'home=$PWD && source share/shardmark/torch.sh &&
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1 bin/gpu_tests | tail -n 1 | grep -E "SKIPPED|PASSED"'
in_root 'gpu-check without a GPU' './gpu-check; [[ $? == 2 ]]'
