// Tests that every node runs at the same time, for a suite with `accept`: a matrix product whose result is
// compared between ranks, copies of memory, exchanges of all pairs, and a file that is written and read back.
#pragma once

#include "doctor/machine/pairs.h"
#include "schema/node_tests.h"
#include "schema/record.h"

namespace shardmark::machine {

struct NodeTestOptions : PairOptions {
  int64_t storage_bytes = 0;
  std::string folder;  // where the file is written; empty: the temporary folder of each node
};

// The result is on rank 0. Collective.
NodeTests test_nodes(const HostGroup& world, const NodeTestOptions& options);

// What a rank's device computes. All ranks multiply the same matrices, whose entries are such that every sum
// is exact in every type, so a healthy device of any kind returns the same bits.
struct ProductTest {
  double median_s = 0;
  int64_t checksum = 0;  // of the result; 0 if the first and the last result of this device differ
};
ProductTest multiply(at::Device device);

// Bytes per second of copies inside the device's memory, bytes read and written counted.
double copy_rate(at::Device device);

struct StorageTest {
  double write_rate = Measures::kNone,
         read_rate = Measures::kNone;  // bytes/s; synced, and not from the cache
  std::string trouble = {};            // "cannot write /tmp/x: No space left on device"; empty: none
};
// Writes a file of its own into the folder, reads it back, compares all bytes and removes it.
StorageTest write_and_read(const std::string& folder, int64_t bytes);

}  // namespace shardmark::machine
