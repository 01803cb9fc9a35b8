"""Checks the study of two nodes, as an outsider would: with h5py alone.
Usage: check_study.py STUDY.h5 POINTS [--link GB_PER_S]; with --link no collective may be faster than that."""
import argparse
import h5py

arguments = argparse.ArgumentParser()
arguments.add_argument("study")
arguments.add_argument("points", type=int)
arguments.add_argument("--link", type=float)
given = arguments.parse_args()
with h5py.File(given.study) as study:
    nodes = sorted(study["environment/nodes"].asstr()[:])
    rank_nodes = list(study["environment/rank_nodes"].asstr()[:])
    ids = list(study["points/id"].asstr()[:])
    outcomes = list(study["points/outcome"].asstr()[:])
    operations = list(study["points/operation"].asstr()[:])
    busbw = list(study["points/busbw"][:])

assert nodes == ["node1", "node2"], f"nodes: {nodes}"
assert rank_nodes == ["node1", "node2"], f"nodes of the ranks: {rank_nodes}"
assert len(ids) == given.points, f"{len(ids)} points instead of {given.points}"
assert len(set(ids)) == given.points, "a point was measured twice"
assert set(outcomes) == {"ok"}, f"outcomes: {outcomes}"
if given.link:
    collectives = [(name, rate) for name, rate in zip(operations, busbw) if name]
    assert collectives, "no collectives"
    for name, rate in collectives:
        assert 0 < rate <= given.link, f"{name}: busbw {rate:.4g} GB/s over a link of {given.link:.4g} GB/s"
