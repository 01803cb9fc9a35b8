#!/usr/bin/env bash
# Checks everything that shardmark does on the GPUs of this machine, within ten minutes: facts about the machine, the
# GPU tests, the GPU suites, training runs, memory errors and kernels. If time is left, it also measures what the page of
# results shows: steps beside torch.compile, products in FP8, and profiles. Each step has its own time limit, and a failed
# step does not stop the others. Steps for which there is no time left are listed. The output of the steps, the studies,
# the report and a table of the steps (steps.txt) are written to one folder.
# shellcheck disable=SC2317  # the steps are called by their names
set -uo pipefail
unset CDPATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'TEXT'
usage: gpu_check.sh [--programs FOLDER] [--only REGEX] [--limit SECONDS] [--total SECONDS] [--list] [FOLDER]

  FOLDER       where everything goes (default: results/gpu-check-NNNN; it must not exist)
  --programs   the folder of shardmark and gpu_tests (default: build, beside jobs)
  --only       only the steps whose name matches this regular expression
  --limit      no step may take longer (default: each has a limit of its own, see --list)
  --total      nor all together (default: 600); what is not begun by then has the outcome no_time
  --list       print the names of the steps, one a line, their limits, and what each does

The steps for the page of results come last, and are left out if there is no time for them. --only 'peers|fp8|profiles'
runs them alone.

Exit status: 0 when every step passed, was skipped as impossible here, with its reason, or was left out; 1 when one failed,
took too long, or had no time although it is one of the checks; 2 when nothing could begin.
TEXT
}

programs=$here/../build only=. folder='' list=no most=100000 total=600
wrong() { echo "gpu_check: $*" >&2; exit 2; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --programs | --only | --limit | --total)
      [[ -n ${2:-} ]] || wrong "$1 needs a value"
      [[ $1 != --limit && $1 != --total || $2 =~ ^[1-9][0-9]{0,5}$ ]] || wrong "$1 needs a whole number of seconds from 1, not '$2'" ;;
  esac
  case $1 in
    --programs) programs=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --limit) most=$2; shift 2 ;;
    --total) total=$2; shift 2 ;;
    --list) list=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; wrong "unknown flag '$1'" ;;
    *) folder=$1; shift ;;
  esac
done

steps=()    # name | limit in seconds | what it does | the function that does it, with its arguments | check or result
step() { steps+=("$1|$2|$3|$4|check"); }
result() { steps+=("$1|$2|$3|$4|result"); }    # for the page of results, if there is time

step facts 30 'driver, clocks, topology, limits of this machine' facts
step doctor 60 'what would spoil the numbers, by shardmark doctor' doctor
step layouts 150 'tests/gpu of layouts and NCCL on two ranks: two GPUs, or two processes that share one (emulated)' layouts
step tests 150 'tests/gpu on one rank' tests_alone
step tests-2 200 'the other tests of tests/gpu on two ranks' tests_of_two
step sanitizer 120 'compute-sanitizer memcheck over a step of a small model' sanitizer
step single 240 'suites/gpu-single.yaml' 'suite gpu-single'
step strategies 150 'suites/gpu-strategies.yaml' 'suite gpu-strategies'
step collectives 90 'suites/gpu-collectives.yaml' 'suite gpu-collectives'
step memory 90 'suites/gpu-memory.yaml' 'suite gpu-memory'
step train 60 'a training run with a checkpoint, and another that goes on from it' train
step kernels 120 'every kernel of a step of GPT-2 124M, by torch and fused, and of ResNet-50, with durations' kernels
result peers-resnet-18 150 "ResNet-18 beside torch.compile's best" "peers resnet-18 'resnet(layers=18, image=224, classes=1000)' 128"
result peers-resnet-50 180 "ResNet-50 beside torch.compile's best" "peers resnet-50 'resnet(layers=50, image=224, classes=1000)' 64"
result fp8 180 'suites/gpu-fp8.yaml: products in FP8 beside those in bf16' 'suite gpu-fp8'
result peers-llama-1b 240 "Llama 1B over 2,048 tokens beside torch.compile's best" "peers llama-1b 'llama(sequence=2048)' 4"
result peers-gpt2-large 240 "GPT-2 large beside torch.compile's best" "peers gpt2-large 'gpt2(layers=36, width=1280, heads=20)' 8"
result profiles 180 'every kernel of a step of Llama 1B and GPT-2 medium, with products in bf16 and in FP8, and of ResNet-50 by fused kernels' profiles
step report 60 'the report of all studies' report

if [[ $list == yes ]]; then
  for one in "${steps[@]}"; do IFS='|' read -r name limit what _ <<<"$one"; printf '%-16s %4d s  %s\n' "$name" "$limit" "$what"; done
  exit 0
fi

programs=$(cd "$programs" 2>/dev/null && pwd) || wrong "no folder of programs: run make build, or name it with --programs"
shardmark=$programs/shardmark
[[ -x $shardmark && -x $programs/gpu_tests ]] || wrong "no shardmark and gpu_tests in $programs: run make tests"
num_gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[[ $num_gpus -gt 0 ]] || wrong "no GPU here (nvidia-smi -L lists none); shardmark doctor says what is missing"
if [[ -n ${CUDA_VISIBLE_DEVICES:-} ]]; then visible=${CUDA_VISIBLE_DEVICES//[^,]/}; num_gpus=$((${#visible} + 1)); fi
if [[ -z $folder ]]; then
  number=1
  mkdir -p results || exit 3
  until mkdir "$(printf 'results/gpu-check-%04d' "$number")" 2>/dev/null; do
    number=$((number + 1)); [[ $number -lt 10000 ]] || { echo "gpu_check: cannot make a folder in results/" >&2; exit 3; }
  done
  folder=$(printf 'results/gpu-check-%04d' "$number")
else
  mkdir -- "$folder" || exit 2
fi
folder=$(cd -- "$folder" && pwd)
cd "$folder" || exit 3

unavailable=77    # exit status of a step that is impossible on this machine and says why
if [[ $(id -u) == 0 ]]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

facts() {
  uname -a; nproc; free -g | sed -n 1,2p; ulimit -l -n
  ldd "$shardmark-torch" | grep -E 'torch|nccl|cudart|cudnn|mpi'
  command -v nvidia-smi >/dev/null || { echo "no nvidia-smi: the NVIDIA driver is not installed"; return 1; }
  nvidia-smi && nvidia-smi -q -d CLOCK,POWER,TEMPERATURE,PERFORMANCE && { nvidia-smi topo -m || true; }
}
doctor() { "$shardmark" doctor --strict; }
# Without this option, mpirun binds each of two ranks to one core. But ranks have threads that load data.
tests_alone() { mpirun --bind-to none -n 1 "$programs/gpu_tests" --gtest_brief=0; }
on_two_ranks() {
  if [[ $num_gpus -ge 2 ]]; then mpirun --oversubscribe --bind-to none -n 2 "$programs/gpu_tests" "$@"; return; fi
  echo "one GPU: two processes share it (emulated; NCCL takes each for a host of its own)"
  mpirun --oversubscribe --bind-to none -n 1 -x NCCL_HOSTID=first "$programs/gpu_tests" "$@" : \
    -n 1 -x NCCL_HOSTID=second "$programs/gpu_tests" "$@"
}
layouts() { on_two_ranks --gtest_filter='Nccl.*:LayoutsOnGpu.*:SeveralGpus.*'; }
tests_of_two() { on_two_ranks --gtest_filter='-Nccl.*:LayoutsOnGpu.*:SeveralGpus.*'; }
suite() { "$shardmark" launch "$1" -o "$folder/$1.h5" && "$shardmark" report "$folder/$1.h5"; }
train() {
  local flags=(train --model 'gpt2(layers=4, width=256, heads=4, sequence=256, vocabulary=256)'
    --strategy fsdp --precision bf16 --lr 3e-4 --checkpoint "$folder/checkpoints" --checkpoint-every 50)
  mpirun --bind-to none -n "$num_gpus" "$shardmark" "${flags[@]}" --steps 100 --set log_every=20 &&
    mpirun --bind-to none -n "$num_gpus" "$shardmark" "${flags[@]}" --steps 200 --set log_every=20 --resume
}
small_model='gpt2(layers=2, width=128, heads=2, sequence=64, vocabulary=512)'
sanitizer() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer: it comes with the CUDA Toolkit"; return "$unavailable"; }
  compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 1 "$shardmark-torch" train --model "$small_model" --strategy fsdp \
    --precision bf16 --steps 3
}
# The versions of PyTorch that compile are the fastest peers. They take a minute or two to compile a model.
peers() {    # NAME MODEL BATCH
  "$python" -c 'import numpy, torch' 2>/dev/null || { echo "$python has no numpy and torch (PYTHON names another Python)"; return "$unavailable"; }
  if [[ $2 == llama* ]]; then
    "$python" -c 'import transformers' 2>/dev/null || { echo "$python has no transformers, whose Llama is the peer"; return "$unavailable"; }
  fi
  "$python" "$suites/peers/peers.py" --device cuda --ranks 1 --launches 1 --steps 15 --warmup 6 --models "$2:$3" \
    --only single torch.compile --bytes --program "$shardmark" --python "$python" --output "$folder/peers-$1.json"
}
kernels_of() {    # NAME BATCH FLAG...
  local name=$1 batch=$2
  shift 2
  mkdir "trace-$name" || return
  "$shardmark" train "$@" --strategy single --precision bf16 --batch-size "$batch" --data 'synthetic(size=4096)' --steps 10 \
    --set eval_batches=0 log_every=10 --trace "trace-$name" &&
    "$python" "$here/kernel_list.py" "trace-$name/rank-0.json" 3 >"kernels-$name.txt" && head -n 40 "kernels-$name.txt" || return
  rm -r "trace-$name"    # it is large
}
kernels() {
  kernels_of gpt2 16 --model gpt2 && kernels_of gpt2-fused 16 --model gpt2 --set kernels=fused &&
    kernels_of resnet-layers-50 128 --model 'resnet(layers=50, image=224, classes=1000)'
}
profiles() {
  kernels_of llama-1b 1 --model llama_1b && kernels_of llama-1b-fp8 1 --model llama_1b --set products=fp8 &&
    kernels_of gpt2-medium 16 --model gpt2_medium && kernels_of gpt2-medium-fp8 16 --model gpt2_medium --set products=fp8 &&
    kernels_of resnet-layers-50-fused 128 --model 'resnet(layers=50, image=224, classes=1000)' --set kernels=fused
}
# Figures of the page of results are kept under the name of the device, without paths of this machine.
keep_figures() {
  local device file
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed -n '1{s/^NVIDIA //; s/[ -].*//; p}' | tr '[:upper:]' '[:lower:]')
  mkdir -p reference
  for file in kernels-*.txt peers-*.json; do
    [[ -e $file ]] || continue
    sed "s#$folder/##g; s#$programs/##g; s#$suites/#suites/#g; s#$(dirname "$here")/##g; s#${HOME:-/no-home}/##g; s#\"host\": \"[^\"]*\"#\"host\": \"\"#" \
      "$file" >"reference/${device:-gpu}-$file"
  done
  rmdir reference 2>/dev/null || true
}
report() {
  local studies=(*.h5)
  [[ -e ${studies[0]} ]] || { echo "no study"; return "$unavailable"; }
  "$shardmark" report "${studies[@]}" && "$shardmark" report --all "${studies[@]}" >report.txt && "$shardmark" report "${studies[@]}" --html report.html &&
    "$shardmark" report "${studies[@]}" --raw --csv measured && wc -l report.txt
}

python=${PYTHON:-$(command -v "$here/../.venv/bin/python3" || command -v python3)}
suites=$here/../suites
[[ -d $suites ]] || suites=$here/suites    # in a bundle
suites=$(cd "$suites" && pwd) || exit 3
export here python programs shardmark suites folder num_gpus small_model unavailable
export -f facts doctor layouts on_two_ranks tests_alone tests_of_two suite train sanitizer peers kernels_of kernels profiles report
failed=0
printf '%-16s  %-8s  %8s  %s\n' step outcome seconds log >steps.txt
for one in "${steps[@]}"; do
  IFS='|' read -r name limit what function kind <<<"$one"
  [[ $name =~ $only ]] || continue
  left=$((total - SECONDS))
  if [[ $name != report && $total -gt 120 ]]; then left=$((left - 60)); fi    # leaves time for the report, which always runs
  if [[ $most -lt $limit ]]; then limit=$most; fi
  if [[ $left -lt $limit && $kind == check ]]; then limit=$left; fi    # a check may need less than its limit
  if [[ $limit -lt 1 || $left -lt $limit ]]; then
    echo "not begun: the $total s of --total are over" >"$name.log"
    printf 'gpu_check: %-16s no time left\n' "$name" >&2
    printf '%-16s  %-8s  %8d  %s\n' "$name" no_time 0 "$name.log" >>steps.txt
    if [[ $kind == check ]]; then failed=1; fi
    continue
  fi
  printf 'gpu_check: %-16s %s (at most %d s)\n' "$name" "$what" "$limit" >&2
  start=$SECONDS
  timeout -k 10 "$limit" bash -c "$function" >"$name.log" 2>&1 </dev/null
  status=$?
  took=$((SECONDS - start))
  outcome=failed    # also if the kernel killed it for its memory, which gives status 137 long before the limit
  if [[ $status == 0 ]]; then outcome=passed
  elif [[ $status == "$unavailable" ]]; then outcome=skipped
  elif [[ $status == 124 || $took -ge $limit ]]; then outcome=too_long; echo "ended after its limit of $limit s" >>"$name.log"; fi
  if [[ $outcome == failed || $outcome == too_long ]]; then failed=1; fi
  printf '%-16s  %-8s  %8d  %s\n' "$name" "$outcome" "$took" "$name.log" >>steps.txt
  if [[ $outcome != passed ]]; then tail -n 12 "$name.log" | sed 's/^/    /' >&2; fi
done
keep_figures
cat steps.txt
echo "gpu_check: everything is in $folder"
exit $failed
