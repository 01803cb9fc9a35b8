# NEEDS torch
# What really moves, beside the law: bytes of the mpi transport's own messages as Open MPI's monitoring counts them.
set -eu
shardmark=$1
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
if ! ompi_info --param pml monitoring --level 9 2>/dev/null | grep -q pml_monitoring_enable; then
  echo "skipped: this MPI has no pml_monitoring component"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1
operations=3
bytes=12000000 # cut into 2 or 4 whole parts
failed=0
printf '%-16s %5s %14s %14s %7s\n' 'bytes per rank' ranks law wire ratio
for ranks in 2 4; do
  for row in all_reduce:2:in reduce_scatter:1:in all_gather:1:in broadcast:1:in reduce:1:in all_to_all:1:out gather:0:in \
    scatter:0:in send_recv:2:out; do
    IFS=: read -r name law places <<<"$row"
    "${mpirun[@]}" -n "$ranks" --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
      --mca pml_monitoring_filename "$scratch/$name" "$shardmark" collective "$name" --transport mpi --device cpu \
      -b $bytes -e $bytes -n $operations -w 0 -c 0 >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
    # E: messages of the program itself; those within MPI's barriers and gathers are marked I.
    wire=$(awk '$1 == "E" {sum += $4} END {printf "%.0f", sum}' "$scratch/$name".*.prof)
    awk -v name="$name" -v n="$ranks" -v law_kind="$law" -v places="$places" -v wire="$wire" -v bytes=$bytes \
      -v operations=$operations 'BEGIN {
        # mean over ranks: 2: twice or, for a ring of sends, once the message; 1: all but the own part; 0: the parts of one root
        share = (n - 1) / n
        law = law_kind == 1 ? share : law_kind == 0 ? share / n : name == "all_reduce" ? 2 * share : 1
        law *= bytes
        mean = wire / n / (operations * (places == "in" ? 2 : 1))
        printf "%-16s %5d %14.0f %14.0f %7.3f\n", name, n, law, mean, mean / law
        # A reduce hands its pieces to the root in a second round; all others move exactly what the law says.
        bound = name == "reduce" ? (n + 1) / n : 1
        exit !(mean >= law - 1 && mean <= bound * law + 1)
      }' || { echo "wrong: $name on $ranks ranks"; failed=1; }
  done
done
exit $failed
