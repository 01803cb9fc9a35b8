// How much of a bucket travels when it is compressed: the arithmetic that programs and reductions share.
#pragma once

#include "strategies/program.h"

namespace shardmark::strategies {

// Top-k: elements of a bucket that a rank sends, an even number so that messages stay aligned.
int64_t num_selected(int64_t numel, double ratio);

// int8: a bucket in equal parts, one per rank, of whole blocks; each block has a scale of its own.
inline constexpr int64_t kQuantisedBlock = 256;  // elements
inline constexpr int64_t kScaleBytes = 4;
struct QuantisedParts {
  int64_t numel;  // of a part
  int64_t bytes;  // of a part's message: scales and 8-bit values
};
QuantisedParts quantised_parts(int64_t numel, int64_t ranks);

// powersgd: a parameter as a matrix of its first dimension by all others, sent as two factors of this rank
// where they are smaller than the matrix. All other parameters (vectors, narrow matrices) are sent as they
// are.
struct LowRankMatrix {
  std::string name;  // of the parameter
  int64_t begin;     // in the bucket
  int64_t rows, columns, rank;
};
struct LowRankBucket {
  std::vector<LowRankMatrix> matrices;
  std::vector<specs::Range> others;  // in the bucket
  int64_t left_numel = 0;   // elements of the left factors [rows, rank], and of the others behind them
  int64_t right_numel = 0;  // of the right factors [columns, rank]
};
LowRankBucket low_rank(const ModelTable& model, const std::vector<GroupLayout>& layout,
                       const specs::Bucket& bucket, int64_t rank);

}  // namespace shardmark::strategies
