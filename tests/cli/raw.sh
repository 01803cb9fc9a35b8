#!/usr/bin/env bash
# QUICK
# shardmark report --raw: which files it writes, and that its CSV and JSON agree. Bad input gives one line and exit status 2.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

command=report
"$shardmark" report small.h5 --raw --csv deep/csv >files
[[ $(sort files) == $(ls deep/csv/{points,samples,environment,fields}.csv | sort) ]] || fail "named other files than it wrote: $(cat files)"
"$shardmark" report small.h5 --raw --json >all.json
if can_use python3; then
  python3 - <<'PYTHON' || fail "CSV and JSON do not hold the same"
import csv, json
points = json.load(open("all.json"))["points"]
rows = list(csv.DictReader(open("deep/csv/points.csv", newline="")))
assert len(points) == len(rows) == 7, (len(points), len(rows))
for point, row in zip(points, rows):
    assert list(point)[:-1] == list(row) and list(point)[-1] == "samples"
    for name, value in row.items():
        expected = point[name]
        if expected is None:
            assert value == "", (name, value)
        elif isinstance(expected, bool):
            assert value == str(expected).lower(), (name, value)
        else:
            assert type(expected)(value) == expected, (name, value, expected)
PYTHON
fi

refuses 'add one of them' small.h5 --raw
refuses 'no such study' nothing.h5 --raw --json
refuses 'newer shardmark' newer.h5 --raw --json
refuses '--raw takes one study, got 2' small.h5 shaped.h5 --raw --json
refuses '--csv: the directory small.h5.journal/csv cannot be made (Not a directory)' small.h5 --raw --csv small.h5.journal/csv
refuses '--csv -: the standard output is no folder' small.h5 --raw --csv -
refuses 'points.csv exists' small.h5 --raw --csv deep/csv
for flag in '--table memory' --explain --all '--price 2'; do
  # shellcheck disable=SC2086
  refuses "${flag%% *} excludes --raw" small.h5 --raw --json $flag
done
[[ ! -e - ]] || fail "--csv - made a folder of that name"
# Without /proc, files are opened by their names.
if unshare --mount true 2>/dev/null; then
  unshare --mount bash -c 'umount -l /proc && "$0" report small.h5 --raw --json' "$shardmark" | cmp - all.json || fail "without /proc"
fi
echo 'raw: CSV and JSON agree'
