// What the text and the JSON of nccl-tests share. Source: github.com/NVIDIA/nccl-tests, src/common.cu and
// src/util.cu from 2.0 to 2.19.6. rccl-tests prints the same.
#pragma once

#include <string>
#include <string_view>

#include "import/source.h"
#include "specs/collectives.h"

namespace shardmark::imports {

// A number as it was printed, and half a unit of its last digit.
struct Printed {
  double value = 0, half = 0;
};

// A line of a table, out of place or in place.
struct NcclResult {
  int64_t bytes = 0;
  std::string type, redop;  // redop "": the operation reduces nothing
  bool in_place = false;
  Printed time_us, algbw_gb_s, busbw_gb_s;
  int64_t num_wrong = -1;  // -1: not verified
};

// What a run says before its table.
struct NcclRun {
  const specs::CollectiveRow* operation = nullptr;
  int64_t ranks = 0;
  int64_t num_steps = 0, num_warmup = 0;
  int64_t nodes = 0;
  bool shares_devices = false;  // several ranks are on one GPU
  // How an operation was started, where it was not by itself: times of these are not compared with others.
  int64_t aggregated = 1;  // -m: operations in one group
  int64_t graph = 0;       // -G: launches of a CUDA graph of them
  int64_t unaligned = 0;   // -u: elements by which the buffers are misaligned
  std::string blocking;    // -z: what is waited for after each operation; "": nothing
};

// Says in `said` of which kind the run's times are: as its times, and as options of its transport, so that no
// table joins points of two kinds. UsageError that begins with `where`: of another kind than what is there.
void add_kind(const NcclRun& run, const std::string& where, Contents& said);

// Returns the test that a line names as a program of nccl-tests: "all_reduce" for "mpirun -np 2
// /opt/net_perf/build/all_reduce_perf -b 8"; "" where none does. A name that is a collective of ours wins
// over others, the last of these wins.
std::string nccl_test_in(std::string_view line);

// Returns the collective of the test's name. `where` begins errors. UsageError: a test without a collective
// of ours; nothing is named, and --operation is not given; or both, and they differ.
const specs::CollectiveRow& nccl_operation(const std::string& test, const Given& given,
                                           const std::string& where);

// "": the numbers agree. Else what does not: algbw with size and time: the line is damaged.
std::string damage(const NcclResult& result);
// UsageError where busbw is not algbw x the factor of the operation on so many ranks: that is another
// operation, or run.
void require_factor(const NcclResult& result, const NcclRun& run, const std::string& where);

// As printed; a NaN: nobody looked.
int64_t count_of_wrong(double printed);

Record nccl_record(const NcclResult& result, const NcclRun& run);

// 22907 is "2.29.7", 2708 "2.7.8"; "" for 0.
std::string nccl_version(int64_t code);

}  // namespace shardmark::imports
