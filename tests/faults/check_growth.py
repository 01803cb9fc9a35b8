"""Whether ranks hold more at the end of a long sweep than after its first tenth. Usage: check_growth.py SAMPLES POINTS
SAMPLES: lines of a rank, finished points, resident kB, open files, communicators. Compares the samples up to 25 % of the
points with those beyond 85 %: medians of memory, where 5 % more is allowed, and the least of files (some are open for moments
only). The most communicators beyond 85 % (MPI's end frees them) are compared with the most before: each point has its own, for
a moment beside those of the point before it, so that a few samples may miss the most."""
import collections
import statistics
import sys

samples = collections.defaultdict(list)
for line in open(sys.argv[1]):
    rank, *values = line.split()
    if len(values) == 4:    # a rank that ends during the sample gives fewer values
        samples[int(rank)].append([int(value) for value in values])
points = int(sys.argv[2])
assert sorted(samples) == [0, 1, 2, 3], f"samples of the ranks {sorted(samples)}"

grown = False
for rank, rows in sorted(samples.items()):
    parts = [[row for row in rows if row[0] <= 0.25 * points], [row for row in rows if row[0] > 0.85 * points]]
    assert all(parts), f"rank {rank}: {len(parts[0])} samples at the start, {len(parts[1])} at the end"
    memory = [statistics.median(row[1] for row in part) / 1024 for part in parts]
    files = [min(row[2] for row in part) for part in parts]
    before = [row for row in rows if row[0] <= 0.85 * points]
    communicators = [max(row[3] for row in part) for part in (before, parts[1])]
    print(f"rank {rank}: {memory[0]:.1f} MiB, at the end {100 * (memory[1] / memory[0] - 1):+.2f} %; "
          f"{files[0]} open files, then {files[1]}; {communicators[0]} communicators, then {communicators[1]}")
    grown |= memory[1] > 1.05 * memory[0] or files[1] > files[0] or communicators[1] > communicators[0]
sys.exit(grown)
