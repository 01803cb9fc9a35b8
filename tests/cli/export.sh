#!/usr/bin/env bash
# QUICK
# shardmark export: which files it writes, and that its CSV and JSON agree. Bad input gives one line and exit status 2.
set -euo pipefail

# shellcheck source=tests/cli/checks.bash
source "$(dirname "$0")/checks.bash"

"$shardmark" export small.h5 --csv deep/csv --json all.json >files
[[ $(sort files) == $(ls deep/csv/*.csv all.json | sort) ]] || fail "named other files than it wrote: $(cat files)"
"$shardmark" export small.h5 --json - | cmp - all.json || fail "--json - differs from --json FILE"
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

refuses '--csv DIR, --json FILE' small.h5
refuses 'no such study' nothing.h5 --json -
refuses 'newer shardmark' newer.h5 --json -
refuses '--csv: the directory small.h5.journal/csv cannot be made (Not a directory)' small.h5 --csv small.h5.journal/csv
refuses 'cannot be written' small.h5 --json none/x.json
refuses '--csv -: the standard output is no folder' small.h5 --csv -
[[ ! -e - ]] || fail "--csv - made a folder of that name"
# Without /proc, files are opened by their names.
if unshare --mount true 2>/dev/null; then
  unshare --mount bash -c 'umount -l /proc && "$0" export small.h5 --json -' "$shardmark" | cmp - all.json || fail "without /proc"
fi
echo 'export: CSV and JSON agree'
