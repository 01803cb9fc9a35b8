#!/usr/bin/env bash
# Tests jobs/gpu_check.sh without a GPU, with stand-ins for nvidia-smi, mpirun and the programs: steps that pass, fail,
# take too long, are impossible here or have no time left, and the table of the steps and the exit status.
# shellcheck disable=SC2016  # stand-ins expand what is theirs
set -euo pipefail
# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
mkdir "programs of mine"
check() { PATH=$dir/bin:$PATH runs env -u CUDA_VISIBLE_DEVICES "$home/jobs/gpu_check.sh" --programs "$dir/programs of mine" "$@"; }
# is STEP OUTCOME: the table has this outcome, and the log of the step exists. $folder is the folder of the last check.
is() {
  grep -qE "^$1 +$2 +[0-9]+ +$1\.log$" "$folder/steps.txt" || fail "'$1 $2' is not in: $(cat "$folder/steps.txt")"
  [[ -s $folder/$1.log || $2 == passed ]] || fail "$1.log is empty"
}

answers nvidia-smi 'if [[ $1 == -L ]]; then for ((i = 0; i < ${GPUS:-1}; ++i)); do echo "GPU $i: Fake"; done; fi
if [[ $1 == --query-gpu=name ]]; then echo "NVIDIA H300 90GB HBM9"; fi'
answers mpirun 'echo "mpirun $*"; while [[ $1 == -* || $1 != */* ]]; do shift; done; exec "$@"'
answers compute-sanitizer 'echo "no device for it"; exit 77'
answers gpu_tests 'echo "ran in $PWD, with $*"; sleep "${SLOW:-0}"; exit "${TESTS_STATUS:-0}"'
answers shardmark 'case $1 in
  doctor) exit 0 ;;
  launch) while [[ $1 != -o ]]; do shift; done; echo study >"$2" ;;
  report) echo table; [[ " $* " != *" --html "* ]] || echo page >report.html ;;
  train) echo "no kernel"; exit 4 ;;
esac'
mv bin/{gpu_tests,shardmark} "programs of mine/"

# --- steps ------------------------------------------------------------------------------------------------------------
check --only '^(facts|doctor|tests|single|train|sanitizer|report)$' "a folder"
folder="a folder"
ends 1; has "everything is in $dir/a folder" "no kernel" "step              outcome"
is doctor passed; is tests passed; is single passed; is train failed; is sanitizer skipped; is report passed
[[ -s $folder/gpu-single.h5 && -s $folder/report.html && -s $folder/report.txt ]] || fail "not in the folder: $(ls "$folder")"
[[ $(wc -l <"$folder/steps.txt") == 8 ]] || fail "not a line for each step: $(cat "$folder/steps.txt")"
grep -q "ran in $dir/a folder" "$folder/tests.log" || fail "tests.log: $(cat "$folder/tests.log")"

check --only '^(doctor|tests|report)$'; ends 0
folder=results/gpu-check-0001
is report skipped; is tests passed
TESTS_STATUS=1 check --only 'tests|layouts'; ends 1
folder=results/gpu-check-0002
is tests failed; is tests-2 failed; is layouts failed
[[ $(sed -n 2p "$folder/steps.txt") == layouts* ]] || fail "layouts are not first: $(cat "$folder/steps.txt")"
# Together, both steps on two ranks run every test once.
grep -q 'with --gtest_filter=Nccl.\*:LayoutsOnGpu' "$folder/layouts.log" || fail "layouts.log: $(cat "$folder/layouts.log")"
grep -q 'with --gtest_filter=-Nccl.\*:LayoutsOnGpu' "$folder/tests-2.log" || fail "tests-2.log: $(cat "$folder/tests-2.log")"
grep -q 'NCCL_HOSTID=second' "$folder/tests-2.log" || fail "one GPU is not shared: $(cat "$folder/tests-2.log")"
TESTS_STATUS=137 check --only '^tests$'; ends 1; folder=results/gpu-check-0003; is tests failed
GPUS=2 check --only '^tests-2$'; ends 0; folder=results/gpu-check-0004; is tests-2 passed
! grep -q NCCL_HOSTID "$folder/tests-2.log" || fail "two GPUs, and yet they are shared"

# A step that takes too long does not stop the others. Steps without time left are listed.
SLOW=600 check --only '^(tests|doctor|report|single)$' --limit 2; ends 1; has "at most 2 s"
folder=results/gpu-check-0005
is tests too_long; is single passed; is report passed
SLOW=600 check --only '^(tests|tests-2|single)$' --total 2; ends 1; has "no time left"
folder=results/gpu-check-0006
is tests too_long; is tests-2 no_time; is single no_time

# --- results ----------------------------------------------------------------------------------------------------------
# Profiles and comparisons go to a folder as results/reference has them, without paths. A stand-in takes the place of Python.
answers shardmark 'case $1 in
  launch) while [[ $1 != -o ]]; do shift; done; echo study >"$2" ;;
  train) while [[ $1 != --trace ]]; do shift; done; echo "{}" >"$2/rank-0.json" ;;
  report) [[ " $* " != *" --html "* ]] || echo page >report.html ;;
esac'
mv bin/shardmark "programs of mine/"
answers python-of-mine 'case $1 in
  -c) [[ -z ${LACKS:-} || $2 != *$LACKS* ]] ;;
  *peers.py) echo "peers $*"; while [[ $1 != --output ]]; do shift; done; echo "{\"program\": \"$folder/$programs/x\", \"host\": \"mine\"}" >"$2" ;;
  *kernel_list.py) echo "kernels of $2" ;;
esac'
PYTHON=$dir/bin/python-of-mine LACKS=transformers check --only 'peers|fp8|kernels|profiles'; ends 0
folder=results/gpu-check-0007
is peers-resnet-18 passed; is peers-resnet-50 passed; is peers-llama-1b skipped; is peers-gpt2-large passed; is fp8 passed; is profiles passed
grep -q 'no transformers' "$folder/peers-llama-1b.log" || fail "peers-llama-1b.log: $(cat "$folder/peers-llama-1b.log")"
grep -q -- '--models gpt2(layers=36, width=1280, heads=20):8 --only single torch.compile --bytes' "$folder/peers-gpt2-large.log" ||
  fail "peers-gpt2-large.log: $(cat "$folder/peers-gpt2-large.log")"
kept=("$folder"/reference/*)
[[ "${kept[*]##*/}" == "h300-kernels-gpt2-fused.txt h300-kernels-gpt2-medium-fp8.txt h300-kernels-gpt2-medium.txt\
 h300-kernels-gpt2.txt h300-kernels-llama-1b-fp8.txt h300-kernels-llama-1b.txt h300-kernels-resnet-layers-50-fused.txt\
 h300-kernels-resnet-layers-50.txt\
 h300-peers-gpt2-large.json h300-peers-resnet-18.json h300-peers-resnet-50.json" ]] || fail "in reference: $(ls "$folder/reference")"
! grep -rqF -e "$dir" -e '"mine"' "$folder/reference" || fail "paths or hosts in reference: $(grep -rF -e "$dir" -e mine "$folder/reference")"

# Results for which there is no time are left out, which is no failure.
check --only '^(doctor|peers.*|report)$' --total 130; ends 0
folder=results/gpu-check-0008
is doctor passed; is peers-resnet-18 no_time; is report skipped

# --- what cannot begin ------------------------------------------------------------------------------------------------
# refuses TEXT ARGUMENT...: status 2, and no new folder.
refuses() { local text=$1; shift; check "$@"; ends 2; has "$text"; [[ $(ls results) == $(printf 'gpu-check-%04d\n' {1..8}) ]] || fail "it left: $(ls results)"; }
refuses "File exists" "a folder"
refuses "unknown flag '--fast'" --fast
refuses "--limit needs a whole number of seconds from 1, not '0'" --limit 0
refuses "--only needs a value" --only
GPUS=0 refuses "no GPU here"
[[ $(wc -l <<<"$said") == 1 ]] || fail "not one line"
runs "$home/jobs/gpu_check.sh" --programs nowhere; ends 2; has "no folder of programs"
runs "$home/jobs/gpu_check.sh" --programs bin; ends 2; has "no shardmark and gpu_tests in $dir/bin"
check --list; ends 0; has "tests-2" "two ranks" "240 s"
