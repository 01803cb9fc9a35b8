#!/usr/bin/env bash
# Tests where commands write. If the standard output accepts nothing, each command exits with status 3. Files that a
# command reads are never overwritten, and neither are special files.
set -euo pipefail

home=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "${1:?usage: output.sh path/to/shardmark}")
# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"
shardmark=$program
unset SLURM_JOB_ID

# --- the standard output ----------------------------------------------------------------------------------------------
# fails_to_print COMMAND...: the command fails if stdout is a full disk, and if it is closed.
fails_to_print() {
  local status=0
  "$program" "$@" >/dev/full 2>err || status=$?
  [[ $status == 3 ]] && has err 'cannot write to the standard output' || fail "$* >/dev/full: status $status: $(cat err)"
  status=0
  "$program" "$@" >&- 2>err || status=$?
  [[ $status == 3 ]] && has err 'cannot write to the standard output' || fail "$* >&-: status $status: $(cat err)"
}
cp -r "$home/suites" "$home/tests/data/plan.yaml" .
fails_to_print plan plan.yaml
fails_to_print plan plan.yaml --json
fails_to_print list
fails_to_print --help
fails_to_print --help-all
fails_to_print report --help
fails_to_print report small.h5
fails_to_print report small.h5 --raw --json
fails_to_print predict --model gpt2
fails_to_print submit plan.yaml --print
fails_to_print launch plan.yaml -n 1 --container x --print
if "$program" doctor --help >/dev/null 2>&1; then
  fails_to_print doctor
  fails_to_print collective all_reduce -b 8 -e 8
fi

# --- files that grow too long -----------------------------------------------------------------------------------------
# is_too_long STATUS COMMAND...: if files may have only 1 KiB, the command prints at most one line and leaves no file.
is_too_long() {
  local expected=$1 status=0 before
  shift
  before=$(ls -A)
  (ulimit -f 1; exec "$program" "$@") 2>err >out || status=$?
  [[ $status == "$expected" ]] && [[ $(wc -l <err) == 1 ]] && has err 'File too large' || fail "$*, 1 KiB: status $status: $(cat err)"
  [[ $(ls -A) == "$before" ]] || fail "$*, 1 KiB: $(ls -A)"
}
touch out err
is_too_long 3 plan plan.yaml
is_too_long 3 report small.h5 --all
is_too_long 2 report small.h5 --html page.html
is_too_long 2 compare --write-baseline baseline.json small.h5

# --- files that are read ----------------------------------------------------------------------------------------------
cp -r . ../"$(basename "$dir").kept"
kept=$(realpath ../"$(basename "$dir").kept")
trap 'rm -rf "$dir" "$kept"' EXIT

# spares COMMAND...: the command is refused in one line, and no study changes.
spares() {
  local status=0 file
  "$program" "$@" >out 2>err || status=$?
  [[ $status == 2 && ! -s out && $(wc -l <err) == 1 ]] || fail "$*: status $status: $(cat out err)"
  has err 'name another place'
  for file in *.h5*; do cmp -s "$file" "$kept/$file" || [[ ! -e $kept/$file ]] || fail "$*: $file was changed"; done
}
mkdir links tables plots
for study in small.h5.journal shaped.h5; do
  ln -f "$study" links/hard; ln -sf "../$study" links/soft
  for name in "$study" "./$study" "$dir/$study" links/hard links/soft; do
    spares report "${study%.journal}" --html "$name" --overwrite
  done
  for name in "$study" links/hard; do
    spares compare --write-baseline "$name" "${study%.journal}"
  done
  ln -sf "../$study" tables/strategies.csv; ln -sf "../$study" tables/points.csv; ln -sf "../$study" tables/differences.csv
  spares report "${study%.journal}" --csv tables --table strategies --overwrite
  spares report "${study%.journal}" --raw --csv tables --overwrite
  rm tables/*
done
spares report small.h5 --html small.h5.samples --overwrite
spares report small.h5 shaped.h5 --html shaped.h5 --overwrite
ln -s ../shaped.h5 plots/strong_scaling.png
spares report small.h5 shaped.h5 --plots plots --overwrite

# --- what is no file --------------------------------------------------------------------------------------------------
mkdir folder; ln -s folder link
spares report small.h5 --html folder --overwrite
spares compare --write-baseline folder small.h5
mkfifo pipe    # it is written to, and is still a pipe
cat pipe >page & "$program" report small.h5 --html pipe --overwrite >out; wait $!
[[ -p pipe ]] && has page '<!doctype html>' || fail "the pipe was replaced"
"$program" report small.h5 --html /dev/stdout | cat >page
has page '<!doctype html>'
"$program" report small.h5 --html /dev/null --overwrite >out
[[ -c /dev/null ]] || fail "/dev/null was replaced"
"$program" report small.h5 --html page --overwrite >out    # a regular file is replaced
has page '<!doctype html>'
"$program" compare --write-baseline base.json shaped.h5 2>err
"$program" compare --write-baseline base.json shaped.h5 2>err || fail "a baseline takes no more launches: $(cat err)"
echo 'output: ok'
