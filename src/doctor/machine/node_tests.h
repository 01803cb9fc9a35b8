// Tests that every node runs at the same time, for a suite with `accept`: a matrix product whose result is
// compared between ranks, copies of memory, exchanges of all pairs, and a file that is written and read back.
#pragma once

#include <functional>

#include "doctor/machine/pairs.h"
#include "schema/node_tests.h"
#include "schema/record.h"

namespace shardmark::machine {

struct NodeTestOptions : PairOptions {
  int64_t storage_bytes = 0;
  std::string folder;  // where the file is written; empty: the temporary folder of each node
};

// The result is on rank 0. A test that fails on a rank alone becomes a finding about that rank; messages are
// then not tested, because the rank could not take part. Collective.
NodeTests test_nodes(const HostGroup& world, const NodeTestOptions& options);

// What a rank's device computes, with `size` rows and columns. All ranks multiply the same matrices, whose
// entries are such that every sum is exact in every type, so a healthy device of any kind returns the same
// bits.
struct ProductTest {
  double median_s = Measures::kNone;
  int64_t checksum = 0;  // of the result; 0 if the first and the last result of this device differ
};
ProductTest multiply(at::Device device, int64_t size);
// What the checksums of all ranks say: 1 for a rank whose device contradicts itself, or whose result differs
// from that of more than half of the ranks; NaN for all others where no result has a majority.
std::vector<double> wrong_products(const std::vector<int64_t>& checksums);

// Bytes per second of copies inside the device's memory, bytes read and written counted. They take at most an
// eighth of the memory that a rank may hold.
double copy_rate(at::Device device);

struct StorageTest {
  // Bytes/s: to the disk, and from it if the system drops what it has cached of the file.
  double write_rate = Measures::kNone, read_rate = Measures::kNone;
  std::string trouble = {};  // why there are none, and what to do; empty: there are
};
// Writes a file of its own into the folder, reads it back, compares all bytes and removes it. `on_part` is
// called after each MiB.
StorageTest write_and_read(const std::string& folder, int64_t bytes, const std::function<void()>& on_part);
// The same with one file after another for half a second, and the median rates. A small file takes a few
// milliseconds, so that one pause of the disk or of this process would make a healthy node look broken.
StorageTest test_storage(const std::string& folder, int64_t bytes, const std::function<void()>& on_part);

}  // namespace shardmark::machine
