// The sizes of compressed buckets, which the program (strategies/reductions/) and the kernels
// (executor/reductions/) of a reduction must agree on.
#pragma once

#include "strategies/program.h"

namespace shardmark::strategies {

// Top-k: the number of elements of a bucket that a rank sends. It is even, so that messages stay aligned.
int64_t num_selected(int64_t numel, double ratio);

// int8: a bucket is divided into equal parts, one for each rank, which consist of whole blocks. Each block
// has its own scale.
inline constexpr int64_t kQuantisedBlock = 256;  // elements
inline constexpr int64_t kScaleBytes = 4;
struct QuantisedParts {
  int64_t numel;  // elements of a part
  int64_t bytes;  // of a part's message: scales and 8-bit values
};
QuantisedParts quantised_parts(int64_t numel, int64_t ranks);

// powersgd: a parameter is seen as a matrix whose rows are its first dimension. It is sent as two factors of
// this rank if these are smaller than the matrix. All other parameters (vectors, narrow matrices) are sent as
// they are.
struct LowRankMatrix {
  std::string name;  // of the parameter
  int64_t begin;     // in the bucket
  int64_t rows, columns, rank;
};
struct LowRankBucket {
  std::vector<LowRankMatrix> matrices;
  std::vector<specs::Range> others;  // in the bucket
  // Elements of the left factors [rows, rank], followed by the other parameters.
  int64_t left_numel = 0;
  int64_t right_numel = 0;  // elements of the right factors [columns, rank]
};
LowRankBucket low_rank(const ModelTable& model, const std::vector<GroupLayout>& layout,
                       const specs::Bucket& bucket, int64_t rank);

}  // namespace shardmark::strategies
