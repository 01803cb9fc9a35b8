// How fast devices and links are by their data sheets, and in what others published: rates.csv, a row for
// each figure, with where it stands. Data sheets' peaks come with the study, those of links from
// specs/link.h.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

// What others measured and published. Collectives: bus bandwidth within one node, in place.
struct PublishedRate {
  std::string device;  // exact name
  int64_t ranks;
  std::string operation;  // "matrix product", or of a collective
  std::string type;       // of its elements: a precision, or a type of collectives
  int64_t bytes;          // of the message; 0 for a matrix product
  double rate;            // of one device, in 10^12 FLOP/s or GB/s
  std::string conditions, date, source;
};
const std::vector<PublishedRate>& published_rates();

inline constexpr const char* kMatrixProduct = "matrix product";

// A rate of a report beside them.
struct RatedOperation {
  const MergedPoint* merged;  // a point that has it
  std::string operation, type;
  int64_t ranks;
  int64_t bytes;  // 0 for a matrix product
  double rate;    // as above
  double sheet;   // NaN: not known
  const PublishedRate* published = nullptr;
  // The matrix product is no part of the point's times.
  bool is_doubtful() const { return bytes > 0 && is_unreliable(*merged); }
};

// The matrix products before the points, by machine and precision; the collectives within one node that
// somebody published, and of each collective the largest message from 64 MiB on whose link is known.
// Unreliable points are among them, and marked. A row for each published figure, or one without.
std::vector<RatedOperation> rated_operations(const std::vector<MergedPoint>& points);

}  // namespace shardmark
