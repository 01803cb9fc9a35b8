#!/usr/bin/env bash
# QUICK
# Everything that report, compare, predict and plan write for the studies in tests/data/golden, against the committed
# expectation. A change of the analysis that should not change any output must leave this test green.
#   UPDATE=1 tests/cli/golden.sh build/shardmark    writes the expectation anew; read the difference before you commit it
#   KEEP=folder tests/cli/golden.sh build/shardmark also leaves all outputs in a new folder, to compare two programs with diff -r
set -euo pipefail
export LC_ALL=C

program=$(realpath "${1:?usage: tests/cli/golden.sh path/to/shardmark}")
keep=${KEEP:+$(realpath -m "$KEEP")}
home=$(cd "$(dirname "$0")/../.." && pwd)
golden=$home/tests/data/golden
# The figures in bulky outputs are rounded before they are hashed.
command -v python3 >/dev/null || { echo "no python3 to hash outputs with"; exit 77; }
[[ -z $keep || ! -e $keep ]] || { echo "KEEP: $keep exists; name a new folder"; exit 2; }
dir=$(realpath "$(mktemp -d)")
predictions=
finish() {
  if [[ -n $predictions ]]; then { kill "$predictions"; wait "$predictions"; } 2>/dev/null || true; fi
  rm -rf "$dir"
}
trap finish EXIT

# The reference collection is found from where the program lies and from the working directory. The copy lies where there is
# none, and the working directory has the studies that are named here, so a new reference study changes no output.
mkdir -p "$dir"/{program/bin,empty,new,work/results/reference}
cp "$program" "$dir/program/bin/shardmark"
cd "$dir/work"
cp "$home"/results/reference/h100-gpu-{single,strategies}.h5 results/reference
cp "$home"/results/reference/h100-gpu-{single,strategies}.h5 "$golden"/studies/* "$golden"/suites/* .
cp "$home"/tests/data/studies/{small.h5.journal,small.h5.samples,shaped.h5} "$home"/tests/data/plan.yaml .

# No variable of the caller reaches the program but those that its build may need. PATH is an empty folder, so that --plots
# writes SVG alone on every machine.
shardmark() {
  env -i PATH="$dir/empty" HOME="$dir/empty" TMPDIR="$dir/empty" LC_ALL=C TZ=UTC LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}" \
    ASAN_OPTIONS="${ASAN_OPTIONS-}" UBSAN_OPTIONS="${UBSAN_OPTIONS-}" LLVM_PROFILE_FILE="${LLVM_PROFILE_FILE-}" \
    "$dir/program/bin/shardmark" "$@" </dev/null
}

# runs FOLDER ARGUMENT...: what the command writes to its outputs, and its exit status, go to files in FOLDER.
runs() {
  local folder=$1 status=0
  shift
  printf '%s\n' "shardmark $*" >"$folder/command"
  shardmark "$@" >"$folder/out" 2>"$folder/err" || status=$?
  printf '%s\n' "$status" >"$folder/status"
}
# shows NAME ARGUMENT...: all that the command prints is kept as NAME.txt, for people to read.
shows() {
  local name=$1
  shift
  mkdir -p "$dir/text/$name"
  runs "$dir/text/$name" "$@"
}
# hashes NAME ARGUMENT...: only sums of what the command prints, and of the files that it writes as or into `o`, are kept.
hashes() {
  local name=$1
  shift
  mkdir -p "$dir/bulk/$name"
  runs "$dir/bulk/$name" "$@"
  if [[ -e o ]]; then mv o "$dir/bulk/$name/o"; fi
}

shows report-special report layouts.h5 sustained.h5 settings.h5 together.h5

failures=(--failures restart=10m checkpoint_write=60s)

# --- predict, which runs beside the rest in a folder of its own -----
predicts() {  # predicts NAME ARGUMENT...
  local name=$1
  shift
  shows "predict-$name" predict "$@"
  shows "predict-$name-all" predict "$@" --all
  hashes "predict-$name-json" predict "$@" --json
}
all_predictions() {
  local network=(--network ndr400 --node-link nvlink4 --ranks-per-node 8)
  predicts here shaped.h5 --ranks 2..64
  predicts cluster shaped.h5 --ranks 8..4096 "${network[@]}" --memory 80GiB --price 2
  predicts failures shaped.h5 --ranks 8..512 "${network[@]}" "${failures[@]}" rate=rsc1 watts=700 --price 2
  predicts strong shaped.h5 --ranks 8,16,24 --global-batch 64 --strategy ddp 'fsdp(shard=gradients)'
  predicts layouts shaped.h5 --ranks 8 --layouts --global-batch 16
  predicts scaling scaling.h5 --ranks 2..32
  predicts measured_layouts layouts.h5 collectives.h5 --ranks 4..16 --layouts
  predicts formulas --model gpt2_xl --precision bf16 --step 120ms --link 'mine=5us,25GB/s'
  hashes predict-shortlist predict shaped.h5 --ranks 8 --layouts --global-batch 16 -o o
  hashes predict-plots predict shaped.h5 --ranks 2..64 "${failures[@]}" --plots o
  hashes predict-scaling-plots predict scaling.h5 collectives.h5 --ranks 2..64 --plots o
  hashes predict-trace predict shaped.h5 --ranks 2 --strategy fsdp --batch-size 4 --trace o
  shows predict-no-blocks predict small.h5
  hashes predict-csv predict shaped.h5 --ranks 2..64 --csv o
  hashes predict-markdown predict shaped.h5 --ranks 2..64 --markdown
}
cp -r "$dir/work" "$dir/beside"
(trap - EXIT; cd "$dir/beside"; all_predictions) &
predictions=$!

# --- report: each study, and studies together ------------------------------------------------------------------
options=(--price 2 --link 'mine=5us,25GB/s')
reports() {  # reports NAME STUDY...
  local name=$1
  shift
  shows "report-$name" report "$@"
  shows "report-$name-all" report "$@" --all
  hashes "report-$name-json" report "$@" --json "${options[@]}"
  hashes "report-$name-page" report "$@" --html o "${options[@]}"
  hashes "report-$name-plots" report "$@" --plots o
  hashes "report-$name-metrics" report "$@" --openmetrics o
}
in_other_forms() {  # in_other_forms NAME STUDY...: the forms of the same tables, for some studies
  local name=$1
  shift
  hashes "report-$name-explain" report "$@" --explain
  hashes "report-$name-options" report "$@" --all "${options[@]}"
  hashes "report-$name-csv" report "$@" --csv o "${options[@]}"
  hashes "report-$name-markdown" report "$@" --markdown
}
singles=(scaling layouts forms memory collectives collectives_elsewhere sustained settings together train failures import_nccl
  import_nccl_twice import_damaged import_osu import_imb import_training import_names import_mlperf small shaped h100-gpu-single slow1)
for study in "${singles[@]}"; do
  reports "$study" "$study.h5"
  hashes "report-$study-raw-json" report "$study.h5" --raw --json
done
for study in scaling collectives together failures shaped h100-gpu-single; do
  in_other_forms "$study" "$study.h5"
  hashes "report-$study-raw" report "$study.h5" --raw --csv o
done
in_other_forms two_machines collectives.h5 collectives_elsewhere.h5
reports two_machines collectives.h5 collectives_elsewhere.h5
reports launches old1.h5 old2.h5 old3.h5 new1.h5
reports h100 h100-gpu-single.h5 h100-gpu-strategies.h5
reports imported import_nccl.h5 import_nccl_twice.h5 import_osu.h5 import_imb.h5 import_training.h5
many=(scaling.h5 layouts.h5 forms.h5 collectives.h5 settings.h5 together.h5 train.h5 small.h5)
shows report-many report "${many[@]}"
hashes report-many-all report "${many[@]}" --all
hashes report-many-json report "${many[@]}" --json
hashes report-many-page report "${many[@]}" --html o
hashes report-many-plots report "${many[@]}" --plots o
hashes report-many-metrics report "${many[@]}" --openmetrics o

shows report-goodput report scaling.h5 train.h5 "${failures[@]}" rate=0.01 checkpoint_read=30s watts=300 --price 2 --table goodput --explain
hashes report-goodput-page report scaling.h5 "${failures[@]}" --html o
hashes report-goodput-json report scaling.h5 "${failures[@]}" --json
shows report-costs report scaling.h5 h100-gpu-single.h5 --price 2 --table strategies
shows report-links report scaling.h5 shaped.h5 --link 'mine=5us,25GB/s' --table interconnects
hashes report-csv-one report scaling.h5 --csv - --table scaling_laws
shows report-markdown report small.h5 --markdown --table scaling_laws
shows report-no-table report scaling.h5 --table nonsense
shows report-old-table report scaling.h5 --table weak_scaling
shows report-no-study report nothing.h5

# --- compare ------------------------------------------------------------------------------------------------------------------
compares() {  # compares NAME ARGUMENT...
  local name=$1
  shift
  shows "compare-$name" compare "$@"
  shows "compare-$name-all" compare "$@" --all
  hashes "compare-$name-json" compare "$@" --json
  hashes "compare-$name-junit" compare "$@" --junit o
}
old=(old1.h5 old2.h5 old3.h5)
new=(new1.h5 new2.h5 new3.h5)
hashes compare-csv compare --old "${old[@]}" --new "${new[@]}" --csv o
hashes compare-markdown compare --old "${old[@]}" --new "${new[@]}" --markdown
compares launches --old "${old[@]}" --new "${new[@]}"
compares one_launch old1.h5 new1.h5
compares machines collectives.h5 collectives_elsewhere.h5
compares imported import_nccl_twice.h5 import_damaged.h5
compares reference --reference slow1.h5 slow2.h5 slow3.h5
shows compare-wide-margin compare --old "${old[@]}" --new "${new[@]}" --margin 50
shows compare-failures compare scaling.h5 failures.h5
shows compare-baseline-written compare --write-baseline baseline.json "${old[@]}"
compares baseline --baseline baseline.json "${new[@]}"
mkdir "$dir/bulk/compare-baseline-file" && mv baseline.json "$dir/bulk/compare-baseline-file"

# --- plan ---------------------------------------------------------------------------------------------------------------------
for suite in scaling layouts forms memory collectives sustained settings together plan; do
  shows "plan-$suite" plan "$suite.yaml"
  shows "plan-$suite-all" plan "$suite.yaml" --all
  hashes "plan-$suite-json" plan "$suite.yaml" --json
done
hashes plan-csv plan plan.yaml --csv o
hashes plan-markdown plan plan.yaml --markdown
shows plan-small-memory plan plan.yaml -n 2 --memory 512MiB
shows plan-impossible plan scaling.yaml -n 4 --model gpt2 --memory 1GiB --table impossible
shows plan-step-ddp plan --step ddp --model 'gpt2(layers=2)' -n 2 --set accumulation=2 clip_norm=1
shows plan-step-fsdp plan --step 'fsdp(prefetch=2)' --model 'gpt2(layers=2)' -n 4 --set checkpointing=full
shows plan-step-stages plan --step zero3 --model 'gpt2(layers=4)' -n 8 --rank 3 --set tensor=2 pipeline=2 accumulation=2

# --- against the expectation --------------------------------------------------------------------------------------------------
wait "$predictions" || { echo "FAILED: the predictions did not end"; exit 1; }
predictions=
for folder in "$dir"/text/*; do
  {
    printf '$ %s\n' "$(cat "$folder/command")"
    cat "$folder/out"
    if [[ -s $folder/err ]]; then printf -- '--- standard error\n'; cat "$folder/err"; fi
    printf -- '--- exit status %s\n' "$(cat "$folder/status")"
  } >"$dir/new/${folder##*/}.txt"
done
# Sums: numbers of many digits are rounded to six, because libraries for mathematics differ in the last ones.
python3 - "$dir/bulk" >"$dir/new/sums.txt" <<'PYTHON'
import hashlib, os, re, sys
varies = re.compile(rb'\b(timestamp|hostname)="[^"]*"')    # of JUnit's test suites
number = re.compile(rb"-?\d+\.\d{6,}(?:[eE][-+]?\d+)?|-?\d+(?:\.\d+)?[eE][-+]?\d+")
for folder, folders, files in os.walk(sys.argv[1]):
    folders.sort()
    for name in sorted(set(files) - {"command"}):
        path = os.path.join(folder, name)
        if name.endswith((".png", ".pdf")):
            sys.exit(f"{path}: a converter was found on an empty PATH")
        data = number.sub(lambda match: b"%.6g" % float(match[0]), varies.sub(rb'\1=""', open(path, "rb").read()))
        if data and (name != "status" or data != b"0\n"):
            print(hashlib.sha256(data).hexdigest()[:16], os.path.relpath(path, sys.argv[1]))
PYTHON
if [[ -n $keep ]]; then
  mkdir -p "$keep"
  cp -r "$dir/bulk" "$dir/new" "$keep"
fi
if [[ ${UPDATE:-} == 1 ]]; then
  rm -rf "$golden/expected"
  cp -r "$dir/new" "$golden/expected"
  echo "golden: the expectation in $golden/expected was written anew; read the difference before you commit it"
  exit
fi

differ=0
for name in $({ ls "$dir/new"; ls "$golden/expected"; } | sort -u); do
  [[ $name == *.txt ]] || continue
  if [[ $name == sums.txt ]] || cmp -s "$golden/expected/$name" "$dir/new/$name"; then continue; fi
  if [[ ! -e $dir/new/$name ]]; then echo "tests/data/golden/expected/$name is the output of no command here"; fi
  if [[ -e $golden/expected/$name && -e $dir/new/$name ]]; then
    head -n 1 "$dir/new/$name"
    diff -U 2 --label "expected/$name" --label new "$golden/expected/$name" "$dir/new/$name" | sed -n 1,30p || true
  elif [[ -e $dir/new/$name ]]; then echo "tests/data/golden/expected/$name is missing"; fi
  differ=$((differ + 1))
done
# A line of sums: the sum and the file, below the name of its command.
while read -r file; do
  name=${file%%/*}
  echo "$(cat "$dir/bulk/$name/command" 2>/dev/null || echo "$name"): ${file#*/} differs"
  differ=$((differ + 1))
done < <(sort "$golden/expected/sums.txt" "$dir/new/sums.txt" | uniq -u | cut -d' ' -f2- | sort -u)
if [[ $differ -gt 0 ]]; then
  echo "FAILED: $differ outputs are not as expected."
  echo "To see those of which only the sums are known, run this with a program of the old revision and with the new one:"
  echo "  KEEP=/tmp/golden-old tests/cli/golden.sh OLD_PROGRAM; KEEP=/tmp/golden-new tests/cli/golden.sh $1; diff -r /tmp/golden-old /tmp/golden-new"
  echo "If the change is meant: UPDATE=1 tests/cli/golden.sh $1"
  exit 1
fi
echo "golden: $(find "$dir/new" -name '*.txt' ! -name sums.txt | wc -l) texts and $(wc -l <"$dir/new/sums.txt") sums are as expected"
