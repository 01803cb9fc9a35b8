# NEEDS torch
# QUICK
# shardmark collective: prints the columns of nccl-tests, verifies every element, reports each mistake in one line, and
# never hangs.
set -eu
shardmark=$1
mpirun=(timeout 600 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1

fail() {
  echo "wrong: $*"
  cat "$scratch/out" "$scratch/err"
  exit 1
}
run() { "${mpirun[@]}" "$shardmark" collective "$@" --device cpu >"$scratch/out" 2>"$scratch/err"; }

run all_reduce -b 8 -e 1M -f 8 --iters 5 || fail "all_reduce failed"
[ "$(grep -vc '^#' "$scratch/out")" = 6 ] || fail "one line for each size from 8 B to 1 MiB"
awk '!/^#/ && (NF != 13 || $9 != 0 || $13 != 0 || $6 <= 0 || $10 <= 0) {exit 1}' "$scratch/out" || fail "13 columns, none wrong"
# busbw is algbw x 2(n-1)/n, which is algbw on 2 ranks. algbw is bytes / time.
awk '$1 == 262144 {a = $1 / $6 / 1000; exit !($7 == $8 && $7 > 0.98 * a - 0.01 && $7 < 1.02 * a + 0.01)}' "$scratch/out" ||
  fail "bandwidth by nccl-tests' definition"
grep -q '^# Out of bounds values : 0 OK' "$scratch/out" || fail "footer"

timeout 600 "$shardmark" launch -n 2 collective all_reduce -b 8 -e 8 --iters 2 --device cpu >"$scratch/out" 2>"$scratch/err" ||
  fail "launch starts no ranks for it"
grep -q '^# 2 ranks' "$scratch/out" && [ "$(grep -vc '^#' "$scratch/out")" = 1 ] || fail "launch started other ranks than two"

run all_to_all -b 1000 -e 3000 -i 1000 -d all --iters 2 || fail "all_to_all of all types failed"
[ "$(grep -vc '^#' "$scratch/out")" = 15 ] || fail "3 sizes of 5 types"
run reduce -b 4K -e 4K --op all --iters 2 -w 0 -c 0 || fail "reduce with all operations failed"
[ "$(grep -c 'N/A' "$scratch/out")" = 4 ] || fail "unverified where -c 0"

# The study holds what was printed: a point for each size and side, with every sample of each rank.
run all_reduce -b 1K -e 4K -f 2 --iters 8 -o "$scratch/own.h5" || fail "all_reduce with a study failed"
printed=$(awk '!/^#/ {print $6; print $10}' "$scratch/out")
"$shardmark" report "$scratch/own.h5" --raw --csv "$scratch/csv" >"$scratch/out" 2>"$scratch/err" || fail "its study cannot be read"
python3 - "$scratch/csv/points.csv" $printed <<'EOS' || fail "the study does not hold what was printed: $printed"
import csv, math, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert all(row["outcome"] == "ok" and row["num_steps"] == "8" and row["ranks"] == "2" and row["transport"] == "pt2pt" for row in rows)
kept = sorted(float(row["step"]) * 1e6 for row in rows)
printed = sorted(map(float, sys.argv[2:]))
# The screen rounds: to a hundredth of a microsecond, and to whole microseconds from 10 ms.
assert len(kept) == len(printed) and all(math.isclose(*pair, rel_tol=1e-3, abs_tol=0.006) for pair in zip(kept, printed)), kept
EOS
"$shardmark" report "$scratch/own.h5" --table collectives >"$scratch/out" 2>"$scratch/err" && grep -q '^1,024 ' "$scratch/out" || fail "no table of it"

# Over transport mpi these are the collectives that OSU measures, so an imported result of OSU is compared size by size.
run all_reduce --transport mpi -b 4 -e 64 -f 2 --iters 4 -o "$scratch/library.h5" || fail "all_reduce by the library failed"
awk '!/^#/ && ($9 != 0 || $13 != 0) {exit 1}' "$scratch/out" || fail "all_reduce by the library is wrong"
"$shardmark" import "$(dirname "$0")/../data/import/osu-5.8.txt" --ranks 2 --nodes 1 --device x --transport mpi -o "$scratch/osu.h5" \
  >"$scratch/out" 2>"$scratch/err" || fail "import"
"$shardmark" compare "$scratch/osu.h5" "$scratch/library.h5" >"$scratch/out" 2>"$scratch/err" || true
grep -Eq '^collectives +5 ' "$scratch/out" || fail "5 sizes of both programs, 4 B to 64 B, are not compared"
grep -q 'Times are of another kind on each side: mean over iterations and ranks before; median' "$scratch/out" || fail "kinds of times"

refused() { # the text of the one line, then the arguments
  local words=$1
  shift
  run "$@" && fail "$* was accepted"
  grep -v '^shardmark: warning:' "$scratch/err" | grep '^shardmark:' >"$scratch/lines" || true    # there may be a warning that the machine is busy
  [ "$(wc -l <"$scratch/lines")" = 1 ] || fail "$*: not one line"
  grep -q -- "$words" "$scratch/lines" || fail "$*: the line does not say '$words'"
}
refused "-n: the number of ranks in all commands" all_reduce -n 5
refused "-o: a file to write in all commands; the operator is --op max" all_reduce -o max
refused "the operator is --op prod" all_reduce -o prod
refused "-g: one rank has one GPU" all_reduce -g 8
refused "own.h5 exists; choose another output" all_reduce -b 8 -e 8 -o "$scratch/own.h5"
refused "average of integers" all_reduce -d int32 --op avg
refused "--minbytes 8 is above --maxbytes 4" all_reduce -b 8 -e 4
refused "makes more than 100000 sizes" all_reduce -b 8 -e 1TiB -i 1
refused "out of memory" all_reduce -b 1TiB -e 1TiB
refused "transport nccl needs a GPU" all_reduce --transport nccl
refused "MPI counts elements in 32 bits" all_reduce --transport mpi -b 8GiB -e 8GiB

# Errors in the parts are reported before the header. Valid parts are rated by the bytes that move between ranks.
printf '1\n' >"$scratch/short"
refused "short:1: 1 count, for 2 ranks" all_to_all_v --parts "counts(file=\"$scratch/short\")"
grep -q '^#' "$scratch/out" && fail "the header stands before the refusal"
printf '1 0\n0 1\n' >"$scratch/own"
run all_to_all_v -b 1M -e 1M --iters 3 -d double --parts "counts(file=\"$scratch/own\")" || fail "parts that stay where they are"
awk '!/^#/ && ($3 != "double" || $8 != 0 || $7 <= 0) {exit 1}' "$scratch/out" || fail "bus bandwidth of what moves nowhere"
printf '0 1\n1 0\n' >"$scratch/other"
run all_to_all_v -b 1M -e 1M --iters 3 --parts "counts(file=\"$scratch/other\")" || fail "parts that all move"
awk '!/^#/ && ($3 != "float" || $8 != $7) {exit 1}' "$scratch/out" || fail "bus bandwidth of what moves as a whole"

# Tokens of a mixture: whole tokens are counted, and every element is checked. Bad numbers are refused before the header.
run dispatch -b 1M -e 1M --iters 3 --parts "experts(width=1000, experts=8, top_k=2, once_per=rank)" || fail "dispatch"
awk '!/^#/ && ($1 != 1048000 || $2 != 262000 || $9 != 0 || !($7 > $8)) {exit 1}' "$scratch/out" || fail "whole tokens, and the own ones not on the wire"
run combine -b 64K -e 64K --iters 3 -d bfloat16 --parts "experts(width=64, experts=8, top_k=2)" || fail "combine"
awk '!/^#/ && $9 != 0 {exit 1}' "$scratch/out" || fail "combine is wrong"
refused "takes experts(...)" dispatch --parts "hot(share=0.5)"
refused "takes equal, hot, zipf or counts" all_to_all_v --parts experts
refused "7 experts are not divisible by 2 ranks" dispatch --parts "experts(experts=7, top_k=2)"
refused "hold no token of width 7168" dispatch -b 1K -e 1K
refused "take another type" combine -d int32
refused "take routing balanced, zipf or hot" dispatch --parts "experts(routing=learned)"

# A launcher that started several worlds of one rank.
started() { env -u OMPI_COMM_WORLD_SIZE "$@" timeout 600 "$shardmark" collective all_reduce -b 32 -e 32 --iters 1 --device cpu >"$scratch/out" 2>"$scratch/err"; }
for variable in OMPI_COMM_WORLD_SIZE PMI_SIZE MV2_COMM_WORLD_SIZE JSM_NAMESPACE_SIZE PALS_NRANKS PALS_LOCAL_SIZE FLUX_JOB_SIZE \
  SLURM_STEP_NUM_TASKS WORLD_SIZE; do
  started "$variable=4" && fail "$variable=4 with one rank was accepted"
  grep -q "^shardmark: .*started 4 ranks ($variable), but MPI sees a world of 1 rank each; .*use" "$scratch/err" ||
    fail "$variable: launcher and fix are not named"
  started "$variable=1" || fail "$variable=1 with one rank was refused"
done
grep -q "^shardmark: 1 rank: nothing to communicate" "$scratch/err" || fail "one rank says nothing"
started SLURM_STEP_NUM_TASKS=1 PMI_SIZE=1 WORLD_SIZE=4 RANK=0 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none && fail "torchrun in a step was accepted"
grep -q "torchrun .*started 4 ranks (WORLD_SIZE)" "$scratch/err" || fail "torchrun in a step is not named"
WORLD_SIZE=8 run all_reduce -b 32 -e 32 --iters 1 || fail "mpirun in a pod of WORLD_SIZE=8 was refused"

# One group of a heterogeneous Slurm job is refused. Variables left over from another such job are ignored.
groups=(SLURM_HET_SIZE=2 SLURM_JOB_ID_HET_GROUP_0=70 SLURM_JOB_ID_HET_GROUP_1=71 SLURM_JOB_NUM_NODES_HET_GROUP_1=2)
started "${groups[@]}" SLURM_JOB_ID=70 && fail "one group of two was accepted"
grep -q "^shardmark: .*2 heterogeneous groups with 3 nodes in all (SLURM_HET_SIZE), and its ranks are on 1 of them; .*--het-group=0,1" \
  "$scratch/err" || fail "heterogeneous groups are not named"
started "${groups[@]}" SLURM_JOB_ID=75 || fail "variables of another heterogeneous job were believed"
echo "collective: columns, verification and refusals as they should be"
