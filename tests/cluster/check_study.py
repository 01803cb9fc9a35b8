"""Checks the study of several nodes, as an outsider would: with h5py alone.
Usage: check_study.py STUDY.h5 POINTS [--nodes 2] [--ranks-per-node 1] [--link GB_PER_S] [--faster TRANSPORT] [--wire]
POINTS: of the study, each there once and good; --skipped: so many of them cannot be, by the plan. --link: no collective may be faster than that. --faster: the
transport that begins so has a higher bus bandwidth than `pt2pt` for every message, paired by repetition; prints how much. --wire: the
nodes' network ports counted what collectives send by their formulas."""
import argparse
import statistics
import h5py

arguments = argparse.ArgumentParser()
arguments.add_argument("study")
arguments.add_argument("points", type=int)
arguments.add_argument("--nodes", type=int, default=2)
arguments.add_argument("--ranks-per-node", type=int, default=1)
arguments.add_argument("--link", type=float)
arguments.add_argument("--faster")
arguments.add_argument("--wire", action="store_true")
arguments.add_argument("--skipped", type=int, default=0)
given = arguments.parse_args()
with h5py.File(given.study) as study:
    nodes = sorted(study["environment/nodes"].asstr()[:])
    rank_nodes = list(study["environment/rank_nodes"].asstr()[:])
    texts = {name: list(study["points"][name].asstr()[:]) for name in ("id", "outcome", "operation", "transport")}
    numbers = {name: list(study["points"][name][:])
               for name in ("bytes", "busbw", "repeat", "traffic_bytes", "network_sent_bytes", "network_received_bytes",
                            "network_sent_packets")}
columns = texts | numbers
points = [dict(zip(columns, row)) for row in zip(*columns.values())]

names = [f"node{1 + i}" for i in range(given.nodes)]
assert nodes == names, f"nodes: {nodes}"
by_rank = [name for name in names for _ in range(given.ranks_per_node)]
assert rank_nodes == by_rank, f"nodes of the ranks: {rank_nodes}"
assert len(points) == given.points, f"{len(points)} points instead of {given.points}"
assert len(set(texts["id"])) == given.points, "a point was measured twice"
bad = {point["id"]: point["outcome"] for point in points if point["outcome"] not in ("ok", "skipped")}
assert not bad, f"outcomes: {bad}"
skipped = texts["outcome"].count("skipped")
assert skipped == given.skipped, f"{skipped} points were skipped instead of {given.skipped}"
if given.link:
    collectives = [(point["operation"], point["busbw"]) for point in points if point["operation"]]
    assert collectives, "no collectives"
    for name, rate in collectives:
        assert 0 < rate <= given.link, f"{name}: busbw {rate:.4g} GB/s over a link of {given.link:.4g} GB/s"

if given.wire:
    # Headers and acknowledgements are a few percent; agreements of ranks between windows are a few bytes.
    for point in points:
        sent, received = point["network_sent_bytes"], point["network_received_bytes"]
        law = point["traffic_bytes"] * given.nodes * given.ranks_per_node
        print(f"{point['operation'] or 'a step'}: the ports sent {sent / law:.3f} and received {received / law:.3f} x the formula")
        if point["operation"]:
            assert law <= sent <= 1.1 * law and law <= received <= 1.1 * law, f"{point['operation']}: {sent}, {received}, {law}"
        # A packet of veth holds at most 64 KiB, and TCP acknowledges every second one or fewer.
        assert point["network_sent_packets"] >= sent / 65536, f"{point['network_sent_packets']} packets of {sent} bytes"


def rates(transport, size):
    """Bus bandwidth in GB/s by repetition."""
    return {point["repeat"]: point["busbw"] for point in points
            if point["transport"].startswith(transport) and point["bytes"] == size}


if given.faster:
    for size in sorted(set(numbers["bytes"])):
        flat, other = rates("pt2pt", size), rates(given.faster, size)
        assert flat and flat.keys() == other.keys(), f"not the same repetitions; transports: {set(texts['transport'])}"
        ratios = sorted(other[turn] / flat[turn] for turn in flat)
        print(f"{given.faster}) over pt2pt, {size / 2**20:.3g} MiB: {statistics.median(ratios):.2f} x the bus bandwidth "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} turns; "
              f"{statistics.median(other.values()):.3f} over {statistics.median(flat.values()):.3f} GB/s)")
        assert statistics.median(ratios) > 1, f"{given.faster} is not faster than pt2pt"
