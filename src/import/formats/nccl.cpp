// Names, checks and records that the text and the JSON of nccl-tests share.
#include "import/formats/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "import/collective_record.h"

namespace shardmark::imports {
namespace {

constexpr std::string_view kPerf = "_perf";

const specs::CollectiveRow* row_of_test(const std::string& test) {
  static const std::map<std::string_view, const char*> kOthers = {{"alltoall", "all_to_all"},
                                                                  {"sendrecv", "send_recv"}};
  const auto other = kOthers.find(test);
  return specs::find_collective(other == kOthers.end() ? test : other->second);
}

bool is_of_name(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

// Whether a printed number agrees with `expected`, which was computed from another printed number with the
// relative error `relative`. Both were rounded when they were printed, so they may differ by the sum of both
// errors. A NaN agrees with nothing.
bool agrees(const Printed& printed, double expected, double relative) {
  return std::abs(printed.value - expected) <= 1.01 * (printed.half + expected * relative) + 1e-9;
}

}  // namespace

// Searches from the end of the line, because the program stands behind the words of its launcher. A name
// counts only where a word ends, and its letters are collected backwards from there.
std::string nccl_test_in(std::string_view line) {
  std::string any;
  for (size_t end = line.rfind(kPerf); end != std::string_view::npos;
       end = end == 0 ? std::string_view::npos : line.rfind(kPerf, end - 1)) {
    const size_t after = end + kPerf.size();
    const bool ends_word = after == line.size() || line.substr(after).starts_with("_mpi") ||
                           std::string_view(" \t'\";)&|,:").find(line[after]) != std::string_view::npos;
    if (!ends_word) continue;  // part of a folder's name: /opt/net_perf/
    size_t begin = end;
    while (begin > 0 && is_of_name(line[begin - 1])) --begin;
    const std::string test(line.substr(begin, end - begin));
    if (row_of_test(test) != nullptr) return test;
    if (any.empty()) any = test;
  }
  return any;
}

const specs::CollectiveRow& nccl_operation(const std::string& test, const Given& given,
                                           const std::string& where) {
  if (test.empty() && given.operation.empty())
    throw UsageError(
        where +
        "it does not say which collective ran (nccl-tests say so since June 2025): give --operation, "
        "such as --operation all_reduce");
  if (test.empty()) return specs::collective(given.operation);
  const specs::CollectiveRow* row = row_of_test(test);
  if (row == nullptr)
    throw UsageError(fmt::format("{}{}{} has no collective in a study; known: {}", where, test, kPerf,
                                 fmt::join(specs::collective_names(), ", ")));
  if (!given.operation.empty() && given.operation != row->name)
    throw UsageError(
        fmt::format("{}it is of {}{}, not of --operation {}", where, test, kPerf, given.operation));
  return *row;
}

void add_kind(const NcclRun& run, const std::string& where, Contents& said) {
  std::string times = "mean over iterations; of all ranks, unless -a said otherwise";
  Options options;
  if (run.aggregated > 1) {
    times += fmt::format("; {} operations in one group (-m)", run.aggregated);
    options["aggregated"] = run.aggregated;
  }
  if (run.graph > 0) {
    times += "; replayed as a CUDA graph (-G)";
    options["graph"] = true;
  }
  if (!run.blocking.empty()) {
    times += "; " + run.blocking + " (-z)";
    options["blocking"] = true;
  }
  if (run.unaligned > 0) {
    times += fmt::format("; buffers misaligned by {} elements (-u)", run.unaligned);
    options["unaligned"] = run.unaligned;
  }
  if (!said.times.empty() && said.times != times)
    throw UsageError(fmt::format("{}its times are of another kind ({}) than those above ({}); split the file",
                                 where, times, said.times));
  said.times = times;
  said.transport = "nccl";
  said.transport_options = options;
}

std::string damage(const NcclResult& result) {
  const double expected = static_cast<double>(result.bytes) / result.time_us.value / 1e3;
  if (!(result.time_us.value > 0)) return "a time above 0 is missing";
  if (agrees(result.algbw_gb_s, expected, result.time_us.half / result.time_us.value)) return "";
  return fmt::format("{} B in {} us are {:.4g} GB/s, not {}", result.bytes, result.time_us.value, expected,
                     result.algbw_gb_s.value);
}

void require_factor(const NcclResult& result, const NcclRun& run, const std::string& where) {
  const double factor = run.operation->busbw.of(static_cast<double>(run.ranks));
  const double expected = factor * static_cast<double>(result.bytes) / result.time_us.value / 1e3;
  if (agrees(result.busbw_gb_s, expected, result.time_us.half / result.time_us.value)) return;
  throw UsageError(
      fmt::format("{}busbw {} contradicts {} B in {} us: {} on {} ranks makes {:.4g} GB/s of it; was it "
                  "another operation "
                  "(--operation), or another number of ranks?",
                  where, result.busbw_gb_s.value, result.bytes, result.time_us.value, run.operation->name,
                  run.ranks, expected));
}

int64_t count_of_wrong(double printed) {
  constexpr double kMost = 1e15;
  return printed >= 0 ? static_cast<int64_t>(std::min(printed, kMost)) : -1;
}

Record nccl_record(const NcclResult& result, const NcclRun& run) {
  Record record = collective_record(*run.operation, run.ranks, result.bytes, result.time_us.value * 1e-6);
  CollectivePoint& collective = record.point.collective;
  collective.dtype = element_type(result.type);
  if (!result.redop.empty()) collective.reduction = reduction_of(result.redop);
  collective.in_place = result.in_place;
  record.measures.num_steps = run.num_steps;
  record.measures.num_warmup = run.num_warmup;
  record.measures.oversubscribed = run.shares_devices;
  set_wrong(result.num_wrong, fmt::format("{} elements differed from the expected value", result.num_wrong),
            record);
  return record;
}

std::string nccl_version(int64_t code) {
  if (code <= 0) return "";
  const int64_t major = code >= 10000 ? 10000 : 1000;  // NCCL_VERSION of nccl.h changed with 2.9
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

}  // namespace shardmark::imports
