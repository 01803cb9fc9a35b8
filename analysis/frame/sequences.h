// Models of tokens by the length of their sequences: points that differ in nothing else.
#pragma once

#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

struct SequencePoint {
  const MergedPoint* merged;
  int64_t sequence;
  double attention;  // its share of the model's FLOPs
};

// With the same tokens in a micro-batch, or the same samples, whatever the sequence.
struct SequenceSeries {
  Choice model;                       // without its sequence
  std::string same;                   // "32,768 tokens", "1 sample": in a micro-batch of a rank
  std::string setting;                // equal where only strategy and recomputation differ
  std::vector<SequencePoint> points;  // shortest first
};

// Series of two and more lengths, in the order of the points.
std::vector<SequenceSeries> sequence_series(const std::vector<MergedPoint>& points);

}  // namespace shardmark
