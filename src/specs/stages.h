// A model cut into the stages of a pipeline: which blocks a rank has, as a table of its own.
#pragma once

#include "specs/model_table.h"

namespace shardmark::specs {

// A run of blocks that computes without messages from another rank.
struct Chunk {
  int64_t begin = 0, end = 0;  // of the stage's blocks
  int64_t first_block = 0;     // that block `begin` is in the whole model
  bool receives = false;       // its input from another rank
  bool sends = false;          // its output to another rank
};

// What a rank of a pipeline has of a model. Blocks are numbered from 0, the first chunk's first.
struct StageTable {
  SharedTable table;
  std::vector<Chunk> chunks;
};

// Where each of `parts` consecutive parts of the model begins, and the number of blocks. The largest part has
// as few FLOPs as possible, or as few blocks. Of the cuts with such a part it is the one whose parts have the
// most equal numbers of blocks, fewer in earlier parts where they differ: most micro-batches are in flight on
// the first stage of 1f1b. UsageError: fewer blocks than parts.
std::vector<int64_t> part_bounds(const ModelTable& model, int64_t parts, bool by_flops);

// Rank `stage` of `stages` has parts stage, stage + stages, ... of those that the bounds say, and of these
// what a rank of the split has. Only its own blocks are copied: a model may have thousands for many stages.
StageTable stage_table(const ModelTable& whole, const Split& split, const std::vector<int64_t>& bounds,
                       int64_t stage, int64_t stages);

// All of it, on one rank.
StageTable whole_table(SharedTable model);

}  // namespace shardmark::specs
