// How a group lies in flat memory and which part of it each rank owns; used by the formulas here and by the
// strategies. Units are elements, so that the layout is the same for every dtype (master, copy, gradient and
// moments line up). Tensors start at multiples of 128 elements.
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

// A stretch of a group that moves by one operation: cut into equal parts, one for each rank of the team in
// its order; or whole, of one owner.
struct Segment {
  Range range;
  std::optional<int64_t> owner = {};  // in the team; none: it is cut
};

// One group in flat memory.
struct GroupLayout {
  std::vector<int64_t> offsets;  // of each parameter of the group
  int64_t numel = 0;
  Team team;
  std::vector<Segment> segments;  // in the order of memory; between them may be gaps for alignment
  // What a rank of the job owns of a segment, maybe nothing.
  Range owned(size_t segment, int64_t rank) const;
};

// A part of the model's flat memory that ddp reduces in one operation: whole groups, in the order of
// readiness.
struct Bucket {
  std::vector<size_t> groups;
  int64_t numel = 0;
};

// fsdp(layout=flat): a group is one segment, cut wherever 1/ranks of it ends; it is as long as a multiple of
// ranks x 128.
std::vector<GroupLayout> even_layout(const ModelTable& table, Team team);

// fsdp(layout=dim0): every tensor is a segment, cut into as many of its rows as fit: ceil(rows / ranks) a
// rank. The last ranks may own less than others, or only padding.
std::vector<GroupLayout> dim0_layout(const ModelTable& table, Team team);

// The one that fsdp's options ask for.
inline std::vector<GroupLayout> fsdp_layout(const ModelTable& table, Team team, const Options& options) {
  return options.at("layout") == "dim0" ? dim0_layout(table, team) : even_layout(table, team);
}

enum class Evenness { bytes, count };  // what ranks own equally much of, as far as whole tensors allow

// zero3: whole tensors, dealt largest first to the rank that owns least so far (ties: the lowest rank).
// Inside a group, tensors are ordered by owner, so that a rank's part is one segment.
std::vector<GroupLayout> whole_tensor_layout(const ModelTable& table, Team team,
                                             Evenness evenness = Evenness::bytes);

// The option of that name.
inline Evenness evenness(const Options& options) {
  return options.at("evenness") == "count" ? Evenness::count : Evenness::bytes;
}

// Groups in the order in which backward completes their gradients: last block first, root groups behind the
// block that uses them first.
std::vector<size_t> backward_order(const ModelTable& table);

// Buckets in backward order: a bucket is closed when it holds at least its size; the first one is small, so
// that communication starts early. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3 (by
// blocks here).
std::vector<Bucket> buckets(const ModelTable& table, const std::vector<GroupLayout>& layout,
                            int64_t first_elements, int64_t elements);

// Tensors of fewer than `threshold` elements taken out of their groups into one root group "persistent" of
// each chunk: they stay gathered through a step. As it was where nothing is small, or where the chunk is of
// one block.
ModelTable with_persistent(ModelTable table, int64_t threshold, const std::vector<Chunk>& chunks);

// A group that several blocks share, maybe one of another stage: it stays gathered through a step.
inline bool is_root(const GroupSpec& group) { return group.first_block != group.last_block || group.is_tied; }

int64_t total_numel(const std::vector<GroupLayout>& layout);
int64_t largest_share(const std::vector<GroupLayout>& layout);  // of any rank, over all groups
int64_t largest_group(const ModelTable& table, const std::vector<GroupLayout>& layout);  // root groups aside

}  // namespace shardmark::specs
