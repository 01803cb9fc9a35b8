// How a group lies in flat memory, and which part of it each rank owns. The formulas here and the strategies
// use it. All numbers are in elements, so that one layout holds for every dtype, and master weights, copy,
// gradients and moments line up. Tensors start at multiples of 128 elements.
#pragma once

#include <optional>

#include "specs/mesh.h"
#include "specs/stages.h"

namespace shardmark::specs {

inline constexpr int64_t kAlignment = 128;  // elements: 512 bytes in fp32

struct Range {
  int64_t begin = 0;
  int64_t numel = 0;
};

// A range of a group that one operation moves. It is either cut into equal shards, one for each rank of the
// process group in order, or owned whole by one rank.
struct Segment {
  Range range;
  std::optional<int64_t> owner = {};  // index in the process group; none: the segment is sharded
};

// The layout of one group.
struct GroupLayout {
  std::vector<int64_t> offsets;  // of each parameter
  int64_t numel = 0;
  ProcessGroup process_group;
  std::vector<Segment> segments;  // in memory order, maybe with gaps for alignment
  // The range that this rank of the job owns of a segment. It may be empty.
  Range owned(size_t segment, int64_t rank) const;
};

// Whole groups that ddp reduces together by one operation, in the order in which their gradients become
// complete.
struct Bucket {
  std::vector<size_t> groups;
  int64_t numel = 0;
  bool of_experts = false;  // of groups that have their rank's own experts
};

// The ranks that groups are sharded over: the same ranks for all groups, except that experts which other
// ranks do not have are sharded over those that do.
struct ShardingRanks {
  ProcessGroup all, of_experts;
  ShardingRanks(ProcessGroup ranks) : all(ranks), of_experts(ranks) {}
  ShardingRanks(ProcessGroup ranks, ProcessGroup ranks_of_experts)
      : all(ranks), of_experts(ranks_of_experts) {}
  const ProcessGroup& of(const GroupSpec& group) const { return group.has_own_experts() ? of_experts : all; }
};

// fsdp(layout=flat): a group is one segment, which is cut after every 1/ranks of its length. It is padded to
// a multiple of ranks x 128 elements.
std::vector<GroupLayout> even_layout(const ModelTable& table, const ShardingRanks& ranks);

// fsdp(layout=dim0): every tensor is a segment of its own and is cut between rows: each rank has ceil(rows /
// ranks) of them. The last ranks may have fewer rows, or only padding.
std::vector<GroupLayout> dim0_layout(const ModelTable& table, const ShardingRanks& ranks);

// The layout that fsdp's options ask for.
inline std::vector<GroupLayout> fsdp_layout(const ModelTable& table, const ShardingRanks& ranks,
                                            const Options& options) {
  return options.at("layout") == "dim0" ? dim0_layout(table, ranks) : even_layout(table, ranks);
}

enum class Evenness { bytes, count };  // what ranks own about equally much of

// zero3: whole tensors, largest first, go to the rank that owns the least so far (the lowest rank if several
// do). Inside a group, tensors are ordered by owner, so that the tensors of a rank are one segment.
std::vector<GroupLayout> whole_tensor_layout(const ModelTable& table, const ShardingRanks& ranks,
                                             Evenness evenness = Evenness::bytes);

// The option `evenness`.
inline Evenness evenness(const Options& options) {
  return options.at("evenness") == "count" ? Evenness::count : Evenness::bytes;
}

// Groups in the order in which backward completes their gradients: the last block's first. A root group comes
// after the groups of the block that uses it first.
std::vector<size_t> backward_order(const ModelTable& table);

// The order in which groups lie in memory: backward order, but groups with a rank's own experts come after
// all others, so that ranges of either kind can be reduced over their own ranks.
std::vector<size_t> memory_order(const ModelTable& table);

// Divides the groups into buckets in the order of memory. A bucket is closed when it has at least the wanted
// number of elements. The first bucket of either kind is small, so that communication starts early. Source:
// Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3; buckets consist of whole groups here.
std::vector<Bucket> buckets(const ModelTable& table, const std::vector<GroupLayout>& layout,
                            int64_t first_elements, int64_t elements);

// Takes tensors of fewer than `threshold` elements out of their groups and puts them into a root group
// "persistent", one for each chunk, which stays gathered through a step. Chunks without small tensors, or of
// a single block, stay as they are, and so do experts that the rank has and its neighbours have not.
ModelTable with_persistent(ModelTable table, int64_t threshold, const std::vector<Chunk>& chunks);

// Whether several blocks share the group, maybe one of them on another pipeline stage. Such a group stays
// gathered through a step.
inline bool is_root(const GroupSpec& group) { return group.first_block != group.last_block || group.is_tied; }

int64_t total_numel(const std::vector<GroupLayout>& layout);
int64_t largest_share(const std::vector<GroupLayout>& layout);  // the most that any rank owns of all groups

}  // namespace shardmark::specs
