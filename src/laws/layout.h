// How a group lies in flat memory and which part of it each rank owns; used by the formulas here and by the
// strategies. Units are elements, so that the layout is the same for every dtype (master, copy, gradient and
// moments line up). Tensors start at multiples of 128 elements; a group cut evenly ends at a multiple of
// ranks x 128.
#pragma once

#include "laws/model_table.h"

namespace shardmark::laws {

inline constexpr int64_t kAlignment = 128;  // elements: 512 bytes in fp32

struct Range {
  int64_t begin = 0;
  int64_t numel = 0;
};

// One group in flat memory. Every rank owns one contiguous range; the ranges follow each other in rank order.
struct GroupLayout {
  std::vector<int64_t> offsets;  // of each parameter of the group
  int64_t numel = 0;
  std::vector<Range> owned;  // of each rank
  bool even = true;          // all ranges equally long: all-gather and reduce-scatter apply
};

// A part of the model's flat memory that ddp reduces in one operation: whole groups, in the order of
// readiness.
struct Bucket {
  std::vector<size_t> groups;
  int64_t numel = 0;
};

// fsdp: cuts inside tensors; every rank owns 1/ranks of each group.
std::vector<GroupLayout> even_layout(const ModelTable& table, int64_t ranks);

enum class Evenness { bytes, count };  // what ranks own equally much of, as far as whole tensors allow

// zero3: whole tensors, dealt largest first to the rank that owns least so far (ties: the lowest rank).
// Inside a group, tensors are ordered by owner, so that a rank's part is one range.
std::vector<GroupLayout> whole_tensor_layout(const ModelTable& table, int64_t ranks,
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

// A group that several blocks share: it stays gathered through a micro-batch.
inline bool is_root(const GroupSpec& group) { return group.first_block != group.last_block; }

int64_t total_numel(const std::vector<GroupLayout>& layout);
int64_t owned_numel(const std::vector<GroupLayout>& layout, size_t rank);
int64_t largest_share(const std::vector<GroupLayout>& layout);  // of any rank, over all groups
int64_t largest_group(const ModelTable& table, const std::vector<GroupLayout>& layout);  // root groups aside
int64_t root_numel(const ModelTable& table, const std::vector<GroupLayout>& layout);

}  // namespace shardmark::laws
