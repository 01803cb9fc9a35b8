# NEEDS torch
# Compares the formulas with what really moves: the bytes of the pt2pt transport's messages, as counted by Open MPI's
# monitoring. Transport mpi sends no message of its own, and moves what the library's algorithm moves.
set -eu
shardmark=$1
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
if [[ $(ompi_info --param pml monitoring --level 9 2>/dev/null) != *pml_monitoring_enable* ]]; then
  echo "skipped: this MPI has no pml_monitoring component"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1
# shellcheck source=tests/loaded.bash
source "$(dirname "$0")/../loaded.bash"
mkdir "$scratch/tools"
load_program "$(realpath "$shardmark")" "$scratch/tools"
operations=3
bytes=12000000 # divisible into equal parts
ranks=3
failed=0
printf '%-16s %5s %14s %14s %7s\n' 'bytes per rank' ranks law wire ratio
# name, bytes per rank as a fraction of the message, number of variants (out of place, in place)

# Runs collective $2 over transport $3 with the flags that follow; writes what each rank sent to files $scratch/$1.RANK.prof.
monitored() {
  local file=$1 name=$2 transport=$3
  shift 3
  "${mpirun[@]}" -n "$ranks" --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
    --mca pml_monitoring_filename "$scratch/$file" "${loaded[@]}" collective "$name" --transport "$transport" --device cpu \
    -b $bytes -e $bytes --iters $operations -w 0 -c 0 "$@" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
}

# Compares what the ranks sent for collective $1 with the formula $2, out of place and, if $3 is 2, in place, too.
compared() {
  local name=$1 law=$2 places=$3 wire
  monitored "$name$bytes" "$name" pt2pt
  # E marks messages of the program itself. Messages within MPI's barriers and gathers are marked I.
  wire=$(awk '$1 == "E" {sum += $4} END {printf "%.0f", sum}' "$scratch/$name$bytes".*.prof)
  awk -v name="$name" -v n=$ranks -v wire="$wire" -v bytes=$bytes -v operations=$((operations * places)) 'BEGIN {
    law = bytes * '"$law"'
    mean = wire / n / operations
    printf "%-16s %5d %14.0f %14.0f %7.3f\n", name, n, law, mean, mean / law
    exit !(mean >= law - 1 && mean <= law + 1)
  }' || { echo "wrong: $name of $bytes B on $ranks ranks"; failed=1; }
}
for row in 'all_reduce 2*(n-1)/n 2' 'reduce_scatter (n-1)/n 2' 'all_gather (n-1)/n 2' 'broadcast (n-1)/n 2' 'reduce (n-1)/n 2' \
  'all_to_all (n-1)/n 1' 'gather (n-1)/n/n 2' 'scatter (n-1)/n/n 2' 'send_recv 1 1'; do
  read -r name law places <<<"$row"
  compared "$name" "$law" "$places"
done
# Two ranks send whole tensors or their halves, which is equally much.
ranks=2
for bytes in 512 6000 16000; do compared all_reduce '2*(n-1)/n' 2; done
ranks=3 bytes=12000000

# The library's own all_reduce, by two algorithms: everybody sends to rank 0, which sends the sum to everybody (1, linear), or
# a ring (4), in which all ranks send the same. The variables hold for blocking calls alone.
most_of_one_rank() { # the file: messages within MPI's collectives, in multiples of the message
  awk -v one=$((bytes * operations * 2)) '$1 == "E" {exit 1} $1 == "I" {of[FILENAME] += $4}
    END {for (file in of) most = of[file] > most ? of[file] : most; printf "%.2f", most / one}' "$scratch/$1".*.prof
}
export OMPI_MCA_coll_tuned_use_dynamic_rules=1
for row in '1 2.00' '4 1.33'; do
  read -r algorithm expected <<<"$row"
  OMPI_MCA_coll_tuned_allreduce_algorithm=$algorithm monitored "algorithm$algorithm" all_reduce mpi
  most=$(most_of_one_rank "algorithm$algorithm") || { echo "wrong: transport mpi sends messages of its own"; failed=1; }
  echo "MPI_Allreduce, algorithm $algorithm: the busiest rank sends $most x the message, expected $expected"
  [ "$most" = "$expected" ] || failed=1
done
exit $failed
