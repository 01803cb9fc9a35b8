#!/usr/bin/env bash
# Suites by name: installed suites are found from any directory, by every command that takes a suite.
set -euo pipefail

program=$(realpath "${1:?usage: suites.sh path/to/shardmark}")
build=$(dirname "$program")
home=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(realpath "$(mktemp -d)")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/elsewhere"
cmake --install "$build" --prefix "$dir/prefix" >/dev/null
cd "$dir/elsewhere"
unset SLURM_JOB_ID LAUNCHER
shardmark=$dir/prefix/bin/shardmark
installed=$dir/prefix/share/shardmark/suites

fail() { echo "FAILED: $*"; exit 1; }
says() {
  local text=$1
  shift
  "$@" >out 2>&1 || fail "$*: exit status $?: $(cat out)"
  grep -qF -- "$text" out || fail "$*: '$text' is not in: $(cat out)"
}
refuses() {
  local status=0
  "${@:2}" >out 2>err || status=$?
  [[ $status == 2 && $(wc -l <err) == 1 ]] || fail "${*:2}: status $status: $(cat out err)"
  grep -qF -- "$1" err || fail "${*:2}: '$1' is not in: $(cat err)"
}

says "Suites without a folder are in $installed." "$shardmark" list
[[ $(grep -m 3 -E '^Suites' out) == $'Suites: start here\nSuites: one question each\nSuites for GPUs' ]] || fail "the groups of suites: $(cat out)"
[[ $(sed -n '2,4s/ .*//;2,4p' <(sed 's/^  //' out)) == $'layouts\nmemory\nquick' ]] || fail "what to start with: $(cat out)"
grep -q '^  quick  *every strategy' out || fail "list does not name quick: $(cat out)"
for name in primitives primitives.yaml suites/primitives suites/primitives.yaml; do
  says 'primitives on' "$shardmark" plan $name
  says "suites=('$name')" "$shardmark" submit $name --print
  says "shardmark run $name \\" "$shardmark" launch $name -n 1 --container shardmark --print
  grep -qF -- '-o results/primitives-0001.h5' out || fail "the study has another name: $(cat out)"
done
for name in quick suites/quick.yaml; do    # the texts of the suite are installed with it
  says 'quick on 2 ranks' "$shardmark" plan $name
  ! grep -q warning out || fail "plan $name: $(cat out)"
done

# --version, and the list of commands and suites.
for program_of in "$shardmark" "$program"; do
  says "shardmark $(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$home/CMakeLists.txt") (revision " "$program_of" --version
  grep -q '^  HDF5 *1\.' out || fail "--version names no libraries: $(cat out)"
done
"$shardmark" --help >help
for arguments in "" help; do
  # shellcheck disable=SC2086
  "$shardmark" $arguments >out 2>err && cmp -s out help && [[ ! -s err ]] || fail "shardmark $arguments: $(cat out err)"
done
for command in plan submit launch; do
  refuses "nowhere: no such suite here, in suites or in $installed; shardmark list" "$shardmark" $command nowhere
  refuses "far/quick.yaml: no such suite; shardmark list" "$shardmark" $command far/quick.yaml
done

# Suites in the working directory come first.
mkdir suites
printf 'name: mine\ndescription: of this directory\nranks: 1\ntraining: {model: mlp, strategy: single, batch_size: 2}\n' >suites/primitives.yaml
says 'mine on 1 rank' "$shardmark" plan primitives
says 'suites/primitives.yaml' "$shardmark" list
! grep -q '^  primitives ' out || fail "list shows a suite twice: $(cat out)"
grep -q 'suites/primitives.yaml  *of this directory' out || fail "list does not show the suite of this directory: $(cat out)"

# A program in a build tree finds the suites of the sources, and lists them once in their own directory.
rm -r suites
says 'quick on' "$program" plan quick
says 'Suites without a folder are in ' "$program" list
says 'blocks prefetched' "$program" list fsdp
says 'decay of the second moment' "$program" list --all
says 'momentum' "$program" list optimizers
says 'Suites for GPUs' "$program" list suites
refuses "unknown name 'fsd'; shardmark list shows the names" "$program" list fsd
[[ $("$program" list | wc -l) -le 80 ]] || fail "list is longer than two screens"
cd "$home"
[[ $("$program" list | grep -c 'every strategy, weak and strong') == 1 ]] || fail "list shows the suites of the sources twice"
cd "$dir/elsewhere"

if "$shardmark" run --help >/dev/null 2>&1; then
  grep -q LibTorch <("$shardmark" --version) || fail "--version does not name LibTorch"
  mkdir alone && cp "$shardmark" alone    # without shardmark-torch next to it
  for command in run train collective doctor; do
    refuses "$command needs shardmark-torch beside this program, and it is not at $PWD/alone/shardmark-torch" alone/shardmark $command
  done
  says 'plan' alone/shardmark
  # Help and errors need no LibTorch, because the program knows the commands of shardmark-torch.
  printf '#!/bin/sh\nexit 9\n' >alone/shardmark-torch && chmod +x alone/shardmark-torch
  says 'train one model, with' alone/shardmark --help
  refuses "unknown command 'trian'; did you mean 'train'?" alone/shardmark trian
  says 'study: x.h5' timeout 300 "$shardmark" run primitives -o x.h5 --ranks 1 --steps 2
  refuses 'nowhere: no such suite here' "$shardmark" run nowhere -o y.h5
fi
# The reference collection is installed, too.
says 'h100-gpu-single.h5' "$shardmark" list reference
echo 'suites: ok'
