// Hashes a program field by field (FNV-1a).
#include "strategies/program_hash.h"

#include <bit>

#include "schema/content_hash.h"

namespace shardmark::strategies {
namespace {

class Hash {
 public:
  explicit Hash(uint64_t start) : value_(start) {}
  uint64_t value() const { return value_; }

  template <class T>
  void add(const T& item) {
    if constexpr (std::is_floating_point_v<T>)
      mix(std::bit_cast<uint64_t>(static_cast<double>(item)));
    else
      mix(static_cast<uint64_t>(item));
  }
  template <class T>
  void add(const std::vector<T>& items) {
    // The length is hashed, too. Otherwise an element that moved from one list to the next would not count.
    add(items.size());
    for (const T& item : items) add(item);
  }
  template <class T>
  void add(const std::optional<T>& item) {
    add(item.has_value());
    if (item) add(*item);
  }
  void add(const std::string& text) {
    add(text.size());
    value_ = hash_bytes(text, value_);
  }
  void add(const Slice& s) { all(s.buffer, s.begin, s.numel); }
  void add(const ProcessGroup& t) { all(t.ranks, t.stride); }
  void add(const specs::Range& r) { all(r.begin, r.numel); }
  void add(const specs::Segment& s) { all(s.range, s.owner); }
  void add(const GroupLayout& g) { all(g.offsets, g.numel, g.process_group, g.segments); }
  void add(const specs::Chunk& c) { all(c.begin, c.end, c.first_block, c.receives, c.sends); }
  void add(const specs::BlockCall& c) {
    all(c.what, c.numel, c.numel_per_sample, c.element, c.dimension, c.row, c.returns, c.among);
  }
  void add(const specs::Bucket& b) { all(b.groups, b.numel, b.of_experts); }
  void add(const BucketMemory& b) { all(b.bucket, b.gradients, b.scratch, b.value_bytes); }
  void add(const OptimizerSlices& s) { all(s.parameters, s.gradients, s.copy); }
  void add(const Buffer& b) { all(b.use, b.element, b.numel, b.most_numel, b.num_replicated, b.carried); }
  void add(const CollectiveCall& c) {
    all(c.what, c.bytes, c.process_group, c.root, c.out, c.in, c.group, c.inside_block, c.lane, c.dimension);
  }
  void add(const Instruction& i) {
    all(i.what, i.index, i.count, i.to, i.from, i.micro_batch, i.part, i.keeps_activations);
  }
  template <class... Items>
  void all(const Items&... items) {
    (add(items), ...);
  }

 private:
  void mix(uint64_t word) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8) value_ = (value_ ^ (word & 255)) * 0x100000001b3;
  }

  uint64_t value_;
};

}  // namespace

uint64_t program_hash(const Program& p, uint64_t start) {
  Hash hash(start);
  hash.all(p.calls, p.instructions, p.buffers, p.layout, p.parameters, p.gradients, p.owned, p.updated,
           p.counted, p.most_updated, p.offload, p.gradient_scale, p.micro_batches, p.chunks, p.stages,
           p.copies, p.norm, to_text(p.reduction), p.buckets, p.lossy);
  return hash.value();
}

}  // namespace shardmark::strategies
