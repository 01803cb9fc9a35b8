#!/usr/bin/env bash
# Runs the README's two commands on a bare machine: `make run` and `make test` of the committed state, in a root made by
# debootstrap. The root has no compiler, no CUDA and no Python, and from this machine only its package mirrors, name
# servers and certificates.
# usage: tests/install/bare_root.sh [COMMAND...]    by default: make run, then make test. Half an hour on 2 cores, 15 GB in TMPDIR.
#   container    makes what jobs/Dockerfile makes, by its own RUN lines, instead
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
skip() { echo "skipped: $*"; exit 77; }

[[ $(id -u) == 0 ]] || skip "a bare root is made by root only"
command -v debootstrap >/dev/null || skip "debootstrap is missing: apt-get install debootstrap"
[[ -e /etc/debian_version ]] || skip "the mirror is taken from this machine's sources of apt, and it is neither Debian nor Ubuntu"
unshare --mount true 2>/dev/null || skip "this machine lets nobody make mounts"
# The mounts are in a separate mount namespace, so they disappear with this process, however it ends.
[[ ${BARE_ROOT_UNSHARED:-} ]] || BARE_ROOT_UNSHARED=1 exec unshare --mount --propagation private "$0" "$@"

mirror=$(grep -hoE '^(deb|URIs:)( \[.*\])? +https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
  grep -oE 'https?://[^ ]+' | sed -n 1p || true)
[[ $mirror ]] || skip "no mirror is in this machine's sources of apt"
. /etc/os-release
root=$(mktemp -d)
at_end() {
  for folder in proc sys dev; do umount -l "$root/$folder" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap at_end EXIT
trap 'exit 130' INT TERM
debootstrap --variant=minbase --include=ca-certificates "$VERSION_CODENAME" "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -n 5 "$root.log"; rm -f "$root.log"; skip "debootstrap got no base system from $mirror (its last lines are above)"; }
rm -f "$root.log"

rm -f "$root/etc/apt/sources.list"    # this is debootstrap's; this machine may use another file
for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs /usr/local/share/ca-certificates /etc/apt/sources.list \
  /etc/apt/sources.list.d /etc/apt/trusted.gpg.d /etc/apt/apt.conf.d /usr/share/keyrings; do
  [[ ! -e $path ]] || { mkdir -p "$root$(dirname "$path")" && cp -rL "$path" "$root$(dirname "$path")/" 2>/dev/null || true; }
done
git clone -q "$PWD" "$root/src"
for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done

# in_root COMMAND: runs the command in the clone, with only the variables for proxies and certificates.
in_root() {
  local kept
  mapfile -t kept < <(env | grep -E '^(PIP_[A-Z_]+|[A-Za-z]+_(proxy|PROXY)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=' || true)
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${kept[@]}" bash -c "cd /src && $1"
}

in_root 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git make >/dev/null'
if [[ ${1:-} == container ]]; then
  set -- 'rm -rf .venv build' "$(sed -nE '/^RUN apt-get/d; s/^RUN (.*)$/\1/p' jobs/Dockerfile | paste -sd ';' | sed 's/;/ \&\& /g')" \
    "$(sed -nE 's/^CMD \["(.*)"\]$/\1/p' jobs/Dockerfile | sed 's/", "/ /g; s|^|PATH=/src/build:$PATH |')"
elif [[ $# == 0 ]]; then
  set -- 'make run' 'make test'
fi
for command in "$@"; do
  start=$SECONDS
  in_root "$command" || { status=$?; echo "FAILED: '$command' on a bare $PRETTY_NAME: exit status $status after $((SECONDS - start)) s"; exit 1; }
  echo "'$command' on a bare $PRETTY_NAME: ok, $((SECONDS - start)) s"
done
