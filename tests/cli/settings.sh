#!/usr/bin/env bash
# NEEDS torch
# Settings as an axis: a start of the ranks for each, in one study; a setting that a library refuses; resuming; `run`
# without launch; and the comparison of settings.
set -euo pipefail

# shellcheck source=tests/cli/stand_ins.bash
source "$(dirname "$0")/stand_ins.bash"
cat >s.yaml <<'Y'
name: s
ranks: 2
sampling: {warmup_steps: 1, min_steps: 5, max_steps: 5}
environment: {OMPI_MCA_pml: [~, nonsense], threads: 1, OMPI_MCA_btl_vader_eager_limit: [4096, 65536]}
collectives: {operation: all_reduce, bytes: [8, 4KiB]}
Y

# --- the plan ---------------------------------------------------------------------------------------------------------
runs "$program" plan s.yaml
ends 0; has "8 points" "4 starts of the ranks, one for each setting, by launch or submit" "OMPI_MCA_btl_vader_eager_limit=4096 threads=1 " "2 points"
runs "$program" plan s.yaml --json
ends 0; has '"num_starts": 4'
runs "$program" submit --print --nodes 1 s.yaml
ends 0; has "4 starts of 300 s"

# --- run alone measures what it was started with, or says what to type ------------------------------------------------
mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
runs "${mpi[@]}" "$program" run s.yaml -o alone.h5
ends 2; has "s.yaml has 4 settings of environment, and this start has none of them" "shardmark launch s.yaml -n RANKS -o STUDY"
[[ ! -e alone.h5 ]] || fail "a study without a point"
OMPI_MCA_btl_vader_eager_limit=4096 runs "${mpi[@]}" "$program" run s.yaml -o alone.h5 --threads 1
ends 0; has "2 points measured, 6 of other settings"
runs "$program" report alone.h5; ends 0; has "6 points to go"

# --- launch makes every start; what a library refuses fails its points alone ------------------------------------------
OMPI_MCA_btl_vader_eager_limit=1234 runs "$program" launch s.yaml -n 2 -o all.h5
ends 1
has "start 1 of 4: OMPI_MCA_btl_vader_eager_limit=4096 threads=1" "start 4 of 4" "its 2 points count as failed"
runs "$program" report all.h5 --table problems
ends 0; has "its ranks did not start: the job ended with exit status 1"
"$program" report all.h5 --raw --json >all.json || fail "report --raw"
[[ $(grep -c '"outcome":"ok"' all.json) == 4 && $(grep -c '"outcome":"failed"' all.json) == 4 ]] || fail "outcomes"
grep -q "A requested component was not found, or was unable to be opened" all.json || fail "not the library's words"
grep -qE 'eager_limit[^0-9]{1,5}1234' all.json && fail "the study has a variable that its starts took away"
runs "$program" report all.h5 --table settings
ends 0; has "OMPI_MCA_btl_vader_eager_limit=65536" "x fastest"

# --- nothing is measured twice; what failed is, when asked for --------------------------------------------------------
runs "$program" launch s.yaml -n 2 -o all.h5 --resume
ends 1; has "start 1 of 4: OMPI_MCA_btl_vader_eager_limit=4096 threads=1: finished before"; lacks "points measured"
sed -i 's/, nonsense//' s.yaml
runs "$program" launch s.yaml -n 2 -o all.h5 --resume
ends 0; has "start 2 of 2" "finished before"
runs "$program" launch s.yaml -n 2 -o other.h5 -- --threads 2
ends 2; has "the suite lists threads under environment; leave out --threads after --"
runs "$program" launch s.yaml -n 2 -o flag.h5 -- --set "environment=[bind=none, bind=auto]"
ends 0; has "start 2 of 2: bind=auto" "2 points measured, 2 of other settings"
runs "$program" launch s.yaml -n 2 -o flag.h5 -- --set environment=HOME=/tmp
ends 2; has "--set: environment: 'HOME': not a variable that a suite may set"

# --- each repetition is a start of its own, by turns; only then is there a verdict --------------------------------------
cat >turns.yaml <<'Y'
name: turns
ranks: 1
repeats: 3
sampling: {warmup_steps: 1, min_steps: 6, max_steps: 6}
environment: {bind: [auto, none]}
training: {model: {mlp: {features: 8, width: 16, layers: 2}}, strategy: single, batch_size: 2}
Y
runs "$program" plan turns.yaml
ends 0; has "6 starts of the ranks, 3 for each setting, which take turns"
runs "$program" launch turns.yaml -n 1 -o turns.h5
ends 0
has "start 1 of 6: bind=auto, repetition 1 of 3" "start 2 of 6: bind=none, repetition 1 of 3" \
  "start 3 of 6: bind=auto, repetition 2 of 3" "start 6 of 6: bind=none, repetition 3 of 3" "1 point measured, 5 of other starts"
# Each start has its own time to the first step; launch says when it began.
runs "$program" report turns.h5 --raw --csv turns
python3 - turns/points.csv <<'P' || fail "the times to the first step"
import csv, sys
for point in csv.DictReader(open(sys.argv[1])):
    parts = [float(point[part + "_time"]) for part in "launcher program mpi communicators model first_step".split()]
    assert all(0 < seconds < 3600 for seconds in parts), parts
P
runs "$program" launch turns.yaml -n 1 -o turns.h5 --resume
ends 0; has "start 6 of 6: bind=none, repetition 3 of 3: finished before"; lacks " measured;" "1 point measured"
runs "$program" report turns.h5 --table settings --csv turns
ends 0; [[ $(grep -c ',3,' turns/settings.csv) == 2 ]] || fail "not three starts of each: $(cat turns/settings.csv)"
runs "$program" launch turns.yaml -n 1 -o once.h5 -- --repeats 1
ends 0
runs "$program" report once.h5
ends 0; has "Settings, the shortest step first" "2 rows have fewer than 3 starts"
[[ $(grep -c " % ? " <<<"$said") == 2 ]] || fail "a verdict by one start of each"
runs "$program" run turns.yaml -o none.h5 --repetition 4
ends 2; has "--repetition 4: turns.yaml has 3 of each point"
echo settings: ok
