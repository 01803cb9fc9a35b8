"""What a fault has left of a study. Usage: check_fault.py BEFORE.journal AFTER.json [--points N] [--bad OUTCOME...]
BEFORE: the journal as it lay on disk before the fault. AFTER: what `shardmark report --raw` reads now. Every record of BEFORE is
in AFTER, as it was, and no point twice. With --points the study is complete: so many points, each ok, or of an outcome
that --bad allows."""
import argparse
import collections
import json

arguments = argparse.ArgumentParser()
arguments.add_argument("before")
arguments.add_argument("after")
arguments.add_argument("--points", type=int)
arguments.add_argument("--bad", nargs="*", default=[])
given = arguments.parse_args()


def journal_records(path):
    """The last line may be torn: it was copied while it was written."""
    for line in open(path, errors="replace"):
        try:
            record = json.loads(line).get("record")
        except ValueError:
            continue
        if record:
            yield record


# A point whose first attempt ended the job is tried once more, and its later record counts.
before = {record["id"]: record for record in journal_records(given.before) if record["outcome"] == "ok"}
points = json.load(open(given.after))["points"]
after = {point["id"]: point for point in points}
assert len(after) == len(points), "a point is there twice"
for name, record in before.items():
    assert name in after, f"the finished point {name} is lost; {len(before)} were finished, {len(after)} are there"
    for column in ("outcome", "started", "step"):
        assert after[name][column] == record[column], f"the finished point {name} was measured again ({column})"
if given.points is not None:
    assert len(points) == given.points, f"{len(points)} points instead of {given.points}"
    outcomes = collections.Counter(point["outcome"] for point in points)
    assert set(outcomes) <= {"ok", *given.bad}, f"outcomes: {dict(outcomes)}"
