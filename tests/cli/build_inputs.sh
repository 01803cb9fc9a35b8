#!/usr/bin/env bash
# Every header that the build read, and every library that the program loads, must belong to this repository, to .venv,
# or to a Debian package that jobs/bootstrap.sh installs directly or as a dependency. Other files would be missing on
# another machine.
set -euo pipefail
shardmark=$(realpath "$1")
build=$(cd "$(dirname "$shardmark")" && pwd)
home=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "skipped: $*"; exit 77; }

command -v apt-cache >/dev/null && command -v dpkg >/dev/null || skip "packages are looked up with dpkg and apt-cache, which this system does not have"
[[ -e $build/build.ninja ]] || skip "$build was not made with Ninja"
for name in CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH; do
  [[ -z ${!name:-} ]] || skip "$name is set: this build is meant to use more than the packages of jobs/bootstrap.sh"
done
[[ ! -e $home/jobs/env.sh ]] || skip "jobs/env.sh is there: this build may use its modules"

analysis=$(sed -n 's/^SHARDMARK_ANALYSIS_ONLY:BOOL=ON$/--analysis/p' "$build/CMakeCache.txt")
venv=$(realpath "$home/.venv")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The names of packages without version and architecture. Alternatives, and packages that provide a virtual package, are
# included.
mapfile -t wanted < <("$home/jobs/bootstrap.sh" --print $analysis)
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "${wanted[@]}" |
  grep -oE '[a-z0-9][a-z0-9.+-]+(:[a-z0-9]+)?$' | sed 's/:.*//' | sort -u >"$scratch/allowed"

# foreign: prints those of the files on its standard input that come from elsewhere.
foreign() {
  local -a files
  mapfile -t files < <(xargs -rd '\n' realpath -m -- | grep -vE "^($home|$build|$venv)/" | sort -u)
  [[ ${#files[@]} -gt 0 ]] || return 0
  # dpkg knows a file of a merged /usr by only one of its two names.
  { dpkg -S "${files[@]}" "${files[@]#/usr}" 2>/dev/null || true; } | sed -nE 's|^(.*): (/usr)?(/.*)$|\3 \1|p' |
    while read -r file packages; do
      for package in ${packages//,/ }; do echo "$file ${package%%:*}"; done
    done >"$scratch/owners"
  awk -v allowed="$scratch/allowed" -v owners="$scratch/owners" '
    BEGIN {
      while ((getline package <allowed) > 0) installed[package] = 1
      while ((getline line <owners) > 0) {
        split(line, word, " ")
        owner[word[1]] = word[2]
        if (word[2] in installed) known[word[1]] = 1
      }
    }
    { short = $0; sub("^/usr", "", short) }
    !(short in known) { print $0 (short in owner ? " (of the package " owner[short] ")" : " (of no package)") }' \
    <(printf '%s\n' "${files[@]}")
}

cd "$build"
ninja -t deps | sed -n 's/^    //p' | sort -u >"$scratch/headers"
libraries() { ldd "$1" | sed -nE 's/^.*=> (\/[^ ]+) .*$/\1/p'; }
if [[ -x $shardmark-torch ]]; then shardmark=$shardmark-torch; fi    # the whole program, with all that it loads
libraries "$shardmark" >"$scratch/libraries"

# First checks the check itself: it sees the headers that are there, and it finds a foreign file.
for needed in /hdf5.h$ /yaml.h$ /fmt/core.h$ /bits/stl_vector.h$; do
  grep -qE "$needed" "$scratch/headers" || { echo "the check is broken: no header $needed in $(wc -l <"$scratch/headers") headers"; exit 1; }
done
grep -q /libc.so "$scratch/libraries" || { echo "the check is broken: the program does not load libc"; exit 1; }
[[ $(printf '%s\n' /opt/elsewhere/x.h /usr/include/stdio.h | foreign) == "/opt/elsewhere/x.h (of no package)" ]] ||
  { echo "the check is broken: it says of /opt/elsewhere/x.h:"; printf '%s\n' /opt/elsewhere/x.h /usr/include/stdio.h | foreign; exit 1; }

said=$(foreign <"$scratch/headers"; foreign <"$scratch/libraries")
[[ -z $said ]] && { echo "$(wc -l <"$scratch/headers") headers and $(wc -l <"$scratch/libraries") libraries: all are installed by jobs/bootstrap.sh"; exit 0; }
printf 'These files are not installed by jobs/bootstrap.sh; add their package to it or to jobs/requirements.txt:\n%s\n' "$said"
exit 1
