// What the readers of nccl-tests' text and JSON share. Source: github.com/NVIDIA/nccl-tests, src/common.cu
// and src/util.cu from 2.0 to 2.19.6. rccl-tests print the same.
#pragma once

#include <string>
#include <string_view>

#include "import/source.h"
#include "specs/collectives.h"

namespace shardmark::imports {

// A printed number, and half a unit of its last digit.
struct Printed {
  double value = 0, half = 0;
};

// One half of a row: the out-of-place or the in-place results.
struct NcclResult {
  int64_t bytes = 0;
  std::string type, redop;  // redop "": not a reduction
  bool in_place = false;
  Printed time_us, algbw_gb_s, busbw_gb_s;
  int64_t num_wrong = -1;  // -1: not verified
};

// What a run prints before its table.
struct NcclRun {
  const specs::CollectiveRow* operation = nullptr;
  int64_t ranks = 0;
  int64_t num_steps = 0, num_warmup = 0;
  int64_t nodes = 0;
  bool shares_devices = false;  // several ranks on one GPU
  // Special ways of starting operations. Times of these are not compared with others.
  int64_t aggregated = 1;  // -m: operations per group
  int64_t graph = 0;       // -G: launches of a CUDA graph
  int64_t unaligned = 0;   // -u: misalignment of the buffers in elements
  std::string blocking;    // -z: what each operation waits for; "": nothing
};

// Stores in `said` what kind of times the run has: as a description, and as options of its transport, so that
// no table joins configurations of two kinds. Throws UsageError that begins with `where` if `said` already
// has times of another kind.
void add_kind(const NcclRun& run, const std::string& where, Contents& said);

// Returns the test that a line names as a program of nccl-tests: "all_reduce" for "mpirun -np 2
// /opt/net_perf/build/all_reduce_perf -b 8"; "" if there is none. If there are several names, the last one
// that is a collective of ours is taken.
std::string nccl_test_in(std::string_view line);

// Returns the collective of the test. `where` begins error messages. Throws UsageError if the test has no
// collective of ours, if neither the test nor --operation is given, or if both are and they differ.
const specs::CollectiveRow& nccl_operation(const std::string& test, const Given& given,
                                           const std::string& where);

// Returns why the line is damaged: algbw does not agree with size and time. "" if it agrees.
std::string damage(const NcclResult& result);
// Throws UsageError if busbw is not algbw x the operation's factor for this number of ranks. Then the
// operation or the number of ranks must be another one.
void require_factor(const NcclResult& result, const NcclRun& run, const std::string& where);

// The number of wrong elements as printed; -1 for NaN, which means that nobody checked.
int64_t count_of_wrong(double printed);

Record nccl_record(const NcclResult& result, const NcclRun& run);

// Formats a version code: 22907 gives "2.29.7", 2708 "2.7.8", 0 "".
std::string nccl_version(int64_t code);

}  // namespace shardmark::imports
