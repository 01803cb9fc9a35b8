"""The program's synthetic data, made anew in numpy: a peer sees the same samples without a file in between.

Everything is a function of (seed, index). Sources: src/base/hash.h, src/data/order/sampler.cpp,
src/data/synthetic.cpp.
"""

import math

import numpy as np
import torch

POOL = 1 << 18  # number of values; every synthetic sample is a window of them
TARGET, PATTERN, NOISE, POOL_VALUE, SUCCESSOR = range(5)  # purposes of random numbers in synthetic data
EPOCH = 4096 - 4096 // 20  # number of samples: `shardmark train` holds out the last twentieth of 4096


def mix(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_of(*keys):
    """uint64 [n]: a hash of the keys, any of which may be an array."""
    h = np.zeros(1, np.uint64)
    for key in keys:
        h = mix(h ^ np.atleast_1d(np.asarray(key, np.uint64)))
    return h


def below(h, n):
    """A hash scaled to [0, n): the upper half of h x n, which has 96 bits."""
    high, low = (h >> np.uint64(32)) * np.uint64(n), (h & np.uint64(0xFFFFFFFF)) * np.uint64(n)
    return ((high + (low >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)


def permuted(size, key, positions):
    """A pseudo-random permutation of [0, size) at these positions: a Feistel network that walks back into the range."""
    rows = math.ceil(math.sqrt(size))
    columns = (size + rows - 1) // rows
    keys = hash_of(key, np.arange(8))
    out = np.array(positions, np.int64)
    outside = np.arange(len(out))
    while len(outside):
        row, column = out[outside] // columns, out[outside] % columns
        for i in range(0, 8, 2):
            row = (row + below(mix(keys[i] ^ column.astype(np.uint64)), rows)) % rows
            column = (column + below(mix(keys[i + 1] ^ row.astype(np.uint64)), columns)) % columns
        out[outside] = row * columns + column
        outside = outside[out[outside] >= size]
    return out


def drawn(step, ranks, rank, batch, seed):
    """The samples of this rank's batch: every epoch is a shuffle of its own, laid end to end."""
    places = (step * ranks + rank) * batch + np.arange(batch)
    return np.concatenate([
        permuted(EPOCH, hash_of(seed, epoch)[0], places[places // EPOCH == epoch] % EPOCH)
        for epoch in np.unique(places // EPOCH)])


class Tokens:
    """Seven times in eight the next token is the successor of this one, by a fixed permutation of the vocabulary."""

    def __init__(self, vocabulary, sequence, seed):
        self.seed, self.sequence = seed, sequence
        successor = permuted(vocabulary, hash_of(seed, SUCCESSOR)[0], np.arange(vocabulary)).tolist()
        random = hash_of(seed, POOL_VALUE, np.arange(POOL + sequence))
        jumps, targets = (random % np.uint64(8) == 0).tolist(), below(mix(random), vocabulary).tolist()
        pool = [targets[0]]
        for jump, target in zip(jumps[1:], targets[1:]):
            pool.append(target if jump else successor[pool[-1]])
        self.pool = torch.tensor(pool)

    def batch(self, indices):
        starts = below(hash_of(self.seed, NOISE, indices), POOL)
        windows = torch.stack([self.pool[start:start + self.sequence + 1] for start in starts])
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


class Images:
    """A class's pattern plus a sample's noise."""

    def __init__(self, classes, size, seed):
        self.seed, self.classes, self.shape = seed, classes, (3, size, size)
        random = hash_of(seed, POOL_VALUE, np.arange(POOL + math.prod(self.shape)))
        scale = np.sqrt(np.float32(1.5)) / np.float32(1 << 63)
        self.pool = torch.from_numpy(scale * random.astype(np.int64).astype(np.float32))

    def batch(self, indices):
        targets = below(hash_of(self.seed, TARGET, indices), self.classes)

        def windows(purpose, keys):
            starts = below(hash_of(self.seed, purpose, keys), POOL)
            return torch.stack([self.pool[start:start + math.prod(self.shape)] for start in starts])

        images = windows(PATTERN, targets) + windows(NOISE, indices)
        return images.view(len(targets), *self.shape), torch.from_numpy(targets)
