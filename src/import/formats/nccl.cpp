// See nccl.h.
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

// The name before "_perf", without its path; "" where there is none.
std::string_view test_name(std::string_view program) {
  const size_t end = program.rfind(kPerf);
  if (end == std::string_view::npos) return "";
  size_t begin = end;
  while (begin > 0 && ((program[begin - 1] >= 'a' && program[begin - 1] <= 'z') || program[begin - 1] == '_'))
    --begin;
  return program.substr(begin, end - begin);
}

// How far printed numbers are from `expected`, which follows from one that was printed, too.
bool agrees(const Printed& printed, double expected, double relative) {
  return std::abs(printed.value - expected) <= 1.01 * (printed.half + expected * relative) + 1e-9;
}

}  // namespace

const specs::CollectiveRow& nccl_operation(std::string_view program, const Given& given,
                                           const std::string& where) {
  static const std::map<std::string_view, const char*> kOthers = {{"alltoall", "all_to_all"},
                                                                  {"sendrecv", "send_recv"}};
  const std::string_view test = test_name(program);
  if (test.empty() && given.operation.empty())
    throw UsageError(
        where +
        "it does not say which collective ran (nccl-tests say so since June 2025): give --operation, "
        "such as --operation all_reduce");
  if (test.empty()) return specs::collective(given.operation);
  const auto other = kOthers.find(test);
  const specs::CollectiveRow* row =
      specs::find_collective(other == kOthers.end() ? std::string(test) : other->second);
  if (row == nullptr)
    throw UsageError(fmt::format("{}{}{} has no collective in a study; known: {}", where, test, kPerf,
                                 fmt::join(specs::collective_names(), ", ")));
  if (!given.operation.empty() && given.operation != row->name)
    throw UsageError(
        fmt::format("{}it is of {}{}, not of --operation {}", where, test, kPerf, given.operation));
  return *row;
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
  if (!result.redop.empty()) collective.reduction = result.redop == "avg" ? "average" : result.redop;
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
