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

answers nvidia-smi 'if [[ $1 == -L ]]; then for ((i = 0; i < ${GPUS:-1}; ++i)); do echo "GPU $i: Fake"; done; fi'
answers mpirun 'echo "mpirun $*"; while [[ $1 == -* || $1 != */* ]]; do shift; done; exec "$@"'
answers compute-sanitizer 'echo "no device for it"; exit 77'
answers gpu_tests 'echo "ran in $PWD"; sleep "${SLOW:-0}"; exit "${TESTS_STATUS:-0}"'
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
ends 1; has "everything is in $dir/a folder" "no kernel" "step          outcome"
is doctor passed; is tests passed; is single passed; is train failed; is sanitizer skipped; is report passed
[[ -s $folder/gpu-single.h5 && -s $folder/report.html && -s $folder/report.txt ]] || fail "not in the folder: $(ls "$folder")"
[[ $(wc -l <"$folder/steps.txt") == 8 ]] || fail "not a line for each step: $(cat "$folder/steps.txt")"
grep -q "ran in $dir/a folder" "$folder/tests.log" || fail "tests.log: $(cat "$folder/tests.log")"

check --only '^(doctor|tests|report)$'; ends 0
folder=results/gpu-check-0001
is report skipped; is tests passed
TESTS_STATUS=1 check --only 'tests'; ends 1
folder=results/gpu-check-0002
is tests failed; is tests-2 failed
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

# --- what cannot begin ------------------------------------------------------------------------------------------------
# refuses TEXT ARGUMENT...: status 2, and no new folder.
refuses() { local text=$1; shift; check "$@"; ends 2; has "$text"; [[ $(ls results) == $(printf 'gpu-check-%04d\n' {1..6}) ]] || fail "it left: $(ls results)"; }
refuses "File exists" "a folder"
refuses "unknown flag '--fast'" --fast
refuses "--limit needs a whole number of seconds from 1, not '0'" --limit 0
refuses "--only needs a value" --only
GPUS=0 refuses "no GPU here"
[[ $(wc -l <<<"$said") == 1 ]] || fail "not one line"
runs "$home/jobs/gpu_check.sh" --programs nowhere; ends 2; has "no folder of programs"
runs "$home/jobs/gpu_check.sh" --programs bin; ends 2; has "no shardmark and gpu_tests in $dir/bin"
check --list; ends 0; has "tests-2" "two ranks" "240 s"
