// A step of training as a program: the memory that a rank needs for it, and what it does, in order. Each
// strategy writes one (strategies/<name>.cpp); ranks execute it (executor/), `plan` adds up its memory and
// its calls, `predict` simulates it, and a study keeps it. See README.md in this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/choice.h"
#include "specs/collectives.h"
#include "specs/layout.h"
#include "specs/stages.h"

namespace shardmark::strategies {

using specs::Collective;
using specs::Element;
using specs::GroupLayout;
using specs::ModelTable;
using specs::Team;

enum class Use { parameters, gradients, transient };

// Memory that lives as long as training does. Lengths in elements, of this rank.
struct Buffer {
  std::string name;
  Use use = Use::transient;
  Element element = Element::compute;
  int64_t numel = 0;
  int64_t most_numel = 0;   // of the rank that has most
  bool replicated = false;  // the same bits on all ranks between steps
  bool carried = false;     // a step goes on from what the one before left in it: part of a training's state
};

// A stretch of a buffer; buffer -1: none.
struct Slice {
  int64_t buffer = -1;
  int64_t begin = 0;
  int64_t numel = 0;
  Slice first(int64_t count) const { return {buffer, begin, count}; }
  Slice part(specs::Range range) const { return {buffer, begin + range.begin, range.numel}; }
  bool overlaps(const Slice& other) const {
    return buffer == other.buffer && begin < other.begin + other.numel && other.begin < begin + numel;
  }
  bool operator==(const Slice&) const = default;
};

// What is in no buffer: the sum of squares of the gradients, one fp64 element.
inline constexpr Slice kSquares{-2, 0, 1};

// One collective operation, as this rank calls it. Reductions are sums.
struct CollectiveCall {
  Collective what = Collective::all_reduce;
  double bytes = 0;  // payload: the larger of a rank's two sides
  Team team;
  // Among the team: of a broadcast or reduction its root; of a message (send_recv, one side of it or both)
  // the rank at its other end.
  std::optional<int64_t> root = {};
  Slice out = {}, in = {};
  std::optional<int64_t> group = {};  // of the model, the one whose parameters or gradients move
  std::optional<specs::BlockCall> inside_block = {};  // made by the block that computes
  int64_t lane = 0;
  specs::Dimension dimension = specs::Dimension::data;
  const std::string& name() const { return specs::collective(what).name; }
  // Bytes that this rank sends around a ring: of a message those that go out.
  double ring_bytes() const {
    return what == Collective::send_recv && in.numel == 0 ? 0 : bytes * specs::ring_factor(what, team.ranks);
  }
  // What a study keeps; memory is the executor's business.
  bool operator==(const CollectiveCall& other) const {
    return what == other.what && bytes == other.bytes && team == other.team && root == other.root;
  }
};

// A communicator. Lanes keep apart what must not wait for each other: calls of blocks have one of their own,
// so that none waits behind what strategies have in flight, and so have messages (messages.h). A strategy's
// own are on one lane, or its gathers on another, so that a prefetch need not wait for a reduction; that is
// asked for (axis `gathers`): both then share a link and, on a GPU, its multiprocessors.
inline constexpr int64_t kStrategyLane = 0, kBlockLane = 1, kGatherLane = 2, kFirstMessageLane = 3;
struct TeamUse {
  Team team;
  int64_t lane = kStrategyLane;
  bool operator==(const TeamUse&) const = default;
};

// Which part of a step an instruction belongs to. publish: what the optimizer has changed goes where blocks
// see it; this part alone is run, too, when other than an update has changed it.
enum class Part { data, forward, backward, update, publish };

struct Instruction {
  // The first nine, but for start and wait, are work that takes time: a micro-batch is loaded, a block
  // computes forward, backward, or forward once more, the optimizer's part of the step begins. start and wait
  // are communication. The others are local: what a rank does to its own memory between them. A study keeps
  // the first nine, by number.
  enum class What {
    data,
    forward,
    backward,
    update,
    start,
    wait,
    recompute,        // forward of a block whose activations were not kept
    backward_input,   // backward in two parts: the gradient of the block's input,
    backward_weight,  // and those of its parameters
    bind,             // the parameters of group `index` are at `to` from here on
    bind_gradients,   // the same for its gradients: backward adds to what is there
    reshard,          // the parameters of group `index` are in no slot from here on
    copy,             // to = from, converted where their elements differ
    add,              // to += from
    zero,             // to = 0
    pack,             // of the reduction of bucket `index`: before its first call,
    combine,          // before its second one,
    unpack,           // and when both have ended
    squares,          // kSquares = sum of squares of the gradients that this rank updates with
    apply,            // the optimizer updates what this rank owns
  };
  What what = What::data;
  int64_t index = 0;         // of the block, group, bucket or first call
  int64_t count = 1;         // of calls that start in one launch, or are waited for one after the other
  Slice to = {}, from = {};  // of a block that computes: messages, if any
  int64_t micro_batch = 0;
  Part part = Part::data;
  bool keeps_activations = false;  // of a forward: for its backward
  bool operator==(const Instruction&) const = default;
  bool is_compute() const {
    return what <= What::backward_weight && what != What::start && what != What::wait;
  }
  bool is_communication() const { return what == What::start || what == What::wait; }
};

// What the optimizer updates by one kernel, equally long. copy: of the parameters in the compute type, which
// the same kernel writes, and it zeroes the gradients; none: other instructions do.
struct OptimizerSlices {
  Slice parameters, gradients, copy = {};
};

// What this rank owns of a group: [segment of its layout], maybe empty.
using Shard = std::vector<Slice>;

// A bucket of ddp: the groups whose gradients lie in it, and what its reduction needs beside them.
struct BucketMemory {
  specs::Bucket bucket;
  Slice gradients;
  std::vector<Slice> scratch;  // known by the names of their buffers: strategies/reductions/
  double value_bytes = 0;      // what the gradient itself shrinks to, without indices, scales, ranks
};

// Steps repeat: a wait that comes before its call's start is for that call of the step before.
struct Program {
  std::vector<CollectiveCall> calls;  // in the order in which they start
  std::vector<Instruction> instructions;

  std::string strategy;
  std::vector<Buffer> buffers;
  std::vector<GroupLayout> layout;           // [group]
  std::optional<ModelTable> regrouped;       // the model by other groups than its own
  std::vector<Slice> parameters, gradients;  // [group]: fixed location, or none if rebound during the step
  std::vector<Shard> owned;                  // [group]: the parameters that this rank updates
  std::vector<OptimizerSlices> updated;      // the same and their gradients, as the optimizer sees them
  std::vector<Slice> counted;                // of these gradients, what this rank's sum of squares has
  int64_t most_updated = 0;                  // elements, on the rank that updates most
  bool offload = false;                      // the optimizer's state is in host memory
  double gradient_scale = 1;                 // that the backward of the loss begins with
  int64_t micro_batches = 1;
  std::vector<specs::Chunk> chunks;   // of the model's blocks
  int64_t stages = 1;                 // of the pipeline
  Team copies;                        // ranks that have the same part of the model
  bool norm = false;                  // it computes the gradient's norm
  Choice reduction;                   // of ddp; no name: none
  std::vector<BucketMemory> buckets;  // of ddp
  Slice inside_block;  // what a call inside a block is made on where its block has failed; none: no such call
  bool lossy = false;  // the reduced gradient is less than the sum, by choice

  bool splits_backward() const {
    return std::any_of(instructions.begin(), instructions.end(),
                       [](const Instruction& i) { return i.what == Instruction::What::backward_weight; });
  }
  int64_t block_of_model(int64_t block) const {  // by the numbers of the whole model
    for (const specs::Chunk& chunk : chunks)
      if (block >= chunk.begin && block < chunk.end) return chunk.first_block + block - chunk.begin;
    return block;
  }
  // Of its calls, and of what gathers a group that is cut; each once.
  std::vector<TeamUse> teams() const {
    std::vector<TeamUse> all;
    const auto add = [&](const TeamUse& use) {
      if (std::find(all.begin(), all.end(), use) == all.end()) all.push_back(use);
    };
    for (const CollectiveCall& call : calls) add({call.team, call.lane});
    for (const GroupLayout& group : layout)
      if (group.team.ranks > 1 || group.segments.size() > 1) add({group.team});
    return all;
  }
};

}  // namespace shardmark::strategies
