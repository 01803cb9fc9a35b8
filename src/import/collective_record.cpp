// Makes records of collectives, and translates the names that other programs print.
#include "import/collective_record.h"

#include <map>

namespace shardmark::imports {

Point unspecified_point(const std::string& workload, int64_t ranks) {
  Point point;
  point.workload = workload;
  point.ranks = ranks;
  point.seed = 0;
  point.sampling = {0, 0, 0, 0, 0, 0};
  point.training.precision.clear();
  return point;
}

Record collective_record(const specs::CollectiveRow& row, int64_t ranks, int64_t bytes, double time_s) {
  Record record;
  record.point = unspecified_point("collective", ranks);
  record.point.seed = 1;  // what is moved does not depend on it; so it is the point of a suite's default
  CollectivePoint& collective = record.point.collective;
  collective.operation = row.name;
  collective.reduction = row.reduces ? "sum" : "none";
  collective.bytes = bytes;
  collective.in_place = false;
  Measures& m = record.measures;
  m.step_s = time_s;
  m.algbw_gb_s = static_cast<double>(bytes) / time_s / 1e9;
  m.busbw_gb_s = m.algbw_gb_s * row.busbw.of(static_cast<double>(ranks));
  return record;
}

void set_wrong(int64_t num_wrong, const std::string& reason, Record& record) {
  record.measures.num_wrong = num_wrong;
  if (num_wrong <= 0) return;
  record.outcome = Outcome::wrong;
  record.reason = reason;
}

std::string element_type(std::string_view name) {
  static const std::map<std::string_view, const char*> kNames = {
      {"float", "float32"},     {"half", "float16"},       {"double", "float64"},
      {"MPI_FLOAT", "float32"}, {"MPI_DOUBLE", "float64"}, {"MPI_INT", "int32"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? std::string(name) : found->second;
}

std::string reduction_of(std::string_view name) {
  static const std::map<std::string_view, const char*> kNames = {
      {"avg", "average"}, {"MPI_SUM", "sum"}, {"MPI_MIN", "min"}, {"MPI_MAX", "max"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? std::string(name) : found->second;
}

}  // namespace shardmark::imports
