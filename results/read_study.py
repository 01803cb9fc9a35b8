#!/usr/bin/env python3
"""Reads a study without shardmark, with h5py and pandas: its points as a table, and raw samples of a point.

    .venv/bin/python results/read_study.py results/quick.h5
"""

import sys

import h5py
import pandas


def read_points(study):
    """A row for each point; NaN means "not measured"."""
    return pandas.DataFrame(
        {
            name: column.asstr()[:] if column.dtype == object else column[:]
            for name, column in study["points"].items()
        }
    )


def read_samples(study, series, point):
    """Raw samples of a point (by its row) as a table: a row for each rank, a column for each step."""
    index = study["samples"][series]
    start, length, ranks = (index[key][point] for key in ("offset", "length", "ranks"))
    if ranks == 0:
        return pandas.DataFrame()  # not measured
    return pandas.DataFrame(index["values"][start : start + length].reshape(ranks, -1))


with h5py.File(sys.argv[1]) as study:
    points = read_points(study)
    unit = study["points/step"].attrs["unit"]
    print(f"{len(points)} points; step: {study['points/step'].attrs['description']}, in {unit}")
    # The step time made anew: the median over steps of the slowest rank's.
    points["from_samples"] = [
        read_samples(study, "step", row).max(axis="index").median() for row in points.index
    ]
    measured = points[points.outcome == "ok"]
    print(measured[["workload", "operation", "ranks", "step", "from_samples"]].to_string())
