// Divides a model into the stages of a pipeline: the blocks of a rank, as a table of its own.
#pragma once

#include "specs/model_table.h"

namespace shardmark::specs {

// Consecutive blocks that compute without messages from another rank.
struct Chunk {
  int64_t begin = 0, end = 0;  // of the stage's blocks
  int64_t first_block = 0;     // the index of block `begin` in the whole model
  bool receives = false;       // its input comes from another rank
  bool sends = false;          // its output goes to another rank
};

// The part of a model that a pipeline rank has. Its blocks are numbered from 0, chunk after chunk.
struct StageTable {
  SharedTable table;
  std::vector<Chunk> chunks;
};

// The index of the first block of each of `parts` consecutive parts of the model, and the number of blocks.
// The largest part has as few FLOPs (or blocks) as possible. Among all such divisions, parts have the most
// equal numbers of blocks, with fewer in earlier parts where they differ: under 1f1b the first stage has the
// most micro-batches in flight. Throws UsageError if there are fewer blocks than parts.
std::vector<int64_t> part_bounds(const ModelTable& model, int64_t parts, bool by_flops);

// A rank that has these `parts` of those in `bounds`, in order, and of these what its rank of the split has.
// Only its own blocks are copied, because a model may have thousands of blocks and many stages.
StageTable stage_table(const ModelTable& whole, const Split& split, const std::vector<int64_t>& bounds,
                       const std::vector<int64_t>& parts);

// The whole model, on one rank.
StageTable whole_table(SharedTable model);

}  // namespace shardmark::specs
