"""Checks the study of a two-node job, as an outsider would: with h5py alone. Usage: check_study.py STUDY.h5 POINTS"""
import sys
import h5py

path, expected = sys.argv[1], int(sys.argv[2])
with h5py.File(path) as study:
    nodes = sorted(study["environment/nodes"].asstr()[:])
    rank_nodes = list(study["environment/rank_nodes"].asstr()[:])
    ids = list(study["points/id"].asstr()[:])
    outcomes = list(study["points/outcome"].asstr()[:])

assert nodes == ["node1", "node2"], f"nodes: {nodes}"
assert rank_nodes == ["node1", "node2"], f"nodes of the ranks: {rank_nodes}"
assert len(ids) == expected, f"{len(ids)} points instead of {expected}"
assert len(set(ids)) == expected, "a point was measured twice"
assert set(outcomes) == {"ok"}, f"outcomes: {outcomes}"
