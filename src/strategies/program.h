// The intermediate representation of one training step on one rank: the memory that the rank needs, and the
// instructions that it executes, in order. Each strategy writes such a program (strategies/<name>.cpp). The
// executor runs it (executor/), `plan` adds up its memory and its calls, `predict` simulates it, and a study
// stores it. README.md in this folder gives an overview.
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
using specs::ProcessGroup;

enum class Use { parameters, gradients, transient };

// A buffer is allocated once and lives as long as training does. Lengths are in elements; numel is this
// rank's.
struct Buffer {
  std::string name;
  Use use = Use::transient;
  Element element = Element::compute;
  int64_t numel = 0;
  int64_t most_numel = 0;  // on the rank that has most
  // The first elements, as many as hold the same bits on all ranks between steps. Usually all or none; what
  // ranks have of experts differs.
  int64_t num_replicated = 0;
  // The next step reads what this one has left in the buffer, such as the residual of error feedback, so that
  // checkpoints must save it.
  bool carried = false;
  bool is_replicated() const { return num_replicated > 0; }
};

// A contiguous range of a buffer, in elements. Buffer -1 means that there is no memory.
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

// The only operand that lies in no buffer: the sum of squares of the gradients, one fp64 element.
inline constexpr Slice kSquares{-2, 0, 1};

// One collective operation, as this rank calls it. All reductions are sums.
struct CollectiveCall {
  Collective what = Collective::all_reduce;
  double bytes = 0;  // payload: the larger of the rank's input and output
  ProcessGroup process_group;
  // An index in `process_group`: the root of a broadcast or reduction, or the peer of a message (a send_recv,
  // which may send, receive, or do both).
  std::optional<int64_t> root = {};
  Slice out = {}, in = {};
  std::optional<int64_t> group = {};  // the parameter group whose parameters or gradients move
  std::optional<specs::BlockCall> inside_block = {};  // set if a block makes the call while it computes
  int64_t lane = 0;  // with `process_group`: the communicator (ProcessGroupUse)
  specs::Dimension dimension = specs::Dimension::data;
  const std::string& name() const { return specs::collective(what).name; }
  // The bytes that this rank sends if the operation runs as a ring. A message counts on its sender only.
  double ring_bytes() const {
    return what == Collective::send_recv && in.numel == 0
               ? 0
               : bytes * specs::ring_factor(what, process_group.ranks);
  }
  // Compares what a study stores of a call. The memory that a call uses is not part of it.
  bool operator==(const CollectiveCall& other) const {
    return what == other.what && bytes == other.bytes && process_group == other.process_group &&
           root == other.root;
  }
};

// A communicator: a process group together with a lane. Two lanes of a process group are two communicators,
// so that operations on one never wait for operations on the other. The collectives inside blocks have a lane
// of their own, so that none of them waits behind what the strategy has in flight, and so do the messages of
// a pipeline (messages.h). The strategy's own operations share one lane. If the axis `gathers` asks for it,
// its parameter all-gathers use a second one, so that a prefetch need not wait for a gradient reduction. Both
// then compete for the same link and, on a GPU, for the same multiprocessors.
inline constexpr int64_t kStrategyLane = 0, kBlockLane = 1, kGatherLane = 2, kFirstMessageLane = 3;
struct ProcessGroupUse {
  ProcessGroup process_group;
  int64_t lane = kStrategyLane;
  bool operator==(const ProcessGroupUse&) const = default;
};

// The phase of a step that an instruction belongs to. `publish` brings updated parameters to where blocks
// read them (a copy to the compute type, an all-gather). The executor also runs this phase by itself after it
// has drawn the initial parameters or loaded a checkpoint.
enum class StepPart { data, forward, backward, update, publish };

struct Instruction {
  // The first nine are computation, which takes time (a micro-batch is loaded, a block computes, the update
  // begins), and communication (start and wait). Studies store their numbers (program_series.h), so that
  // these must not change. All others are local work: what a rank does to its own memory in between.
  enum class What {
    data,
    forward,
    backward,
    update,
    start,
    wait,
    recompute,        // forward again, of a block whose activations were not kept
    backward_input,   // the part of backward that computes the gradient of the block's input
    backward_weight,  // the part that computes the gradients of its parameters
    bind,             // from here on the parameters of group `index` are at `to`
    bind_gradients,   // from here on backward adds the gradients of group `index` to `to`
    reshard,          // from here on the parameters of group `index` are in no slot
    copy,             // to = from, converted if their element types differ
    add,              // to += from
    zero,             // to = 0
    pack,             // reduction of bucket `index`: local work before its first call
    combine,          // before its second call
    unpack,           // after its last call
    squares,          // kSquares = the sum of squares of Program::counted
    apply,            // the optimizer updates what this rank owns
  };
  What what = What::data;
  int64_t index = 0;  // of the block, group or bucket, or of the first call
  int64_t count = 1;  // calls that start in one launch, or that are waited for in turn
  // The operands of local work. A block that computes receives its input (or its output's gradient) in `from`
  // and leaves what it sends in `to`, if it exchanges messages with other pipeline stages.
  Slice to = {}, from = {};
  int64_t micro_batch = 0;
  StepPart part = StepPart::data;
  bool keeps_activations = false;  // whether a forward keeps its activations for backward
  bool operator==(const Instruction&) const = default;
  bool is_compute() const {
    return what <= What::backward_weight && what != What::start && what != What::wait;
  }
  bool is_communication() const { return what == What::start || what == What::wait; }
};

// Memory that one kernel of the optimizer updates; all slices are equally long. If `copy` is not empty, the
// same kernel also writes the updated parameters to it in the compute type, and zeroes the gradients.
// Otherwise separate instructions do both.
struct OptimizerSlices {
  Slice parameters, gradients, copy = {};
};

// This rank's shard of a group: one slice for each segment of the group's layout. A slice may be empty.
using Shard = std::vector<Slice>;

// A bucket of ddp: the groups whose gradients lie in it, and the memory that its reduction needs in addition.
struct BucketMemory {
  specs::Bucket bucket;
  Slice gradients;
  std::vector<Slice> scratch;  // the executor's half of the reduction finds them by buffer name
  double value_bytes = 0;      // bytes of the values that are sent, without indices and scales
};

// A program runs once per step. A wait that comes before the start of its call waits for that call of the
// previous step.
struct Program {
  std::vector<CollectiveCall> calls;  // in the order in which they start
  std::vector<Instruction> instructions;

  std::string strategy;
  std::vector<Buffer> buffers;
  std::vector<GroupLayout> layout;           // [group]
  std::optional<ModelTable> regrouped;       // set if the strategy groups parameters differently
  std::vector<Slice> parameters, gradients;  // [group]: fixed location, or none if rebound during the step
  std::vector<Shard> owned;                  // [group]: the parameters that this rank updates
  std::vector<OptimizerSlices> updated;      // the same, each range with its gradients
  std::vector<Slice> counted;                // the gradients that this rank adds to the sum of squares
  int64_t most_updated = 0;                  // elements, on the rank that updates most
  bool offload = false;                      // the optimizer's state is in host memory
  double gradient_scale = 1;                 // gradient that the backward of the loss starts from
  int64_t micro_batches = 1;
  std::vector<specs::Chunk> chunks;   // of this rank's blocks
  int64_t stages = 1;                 // pipeline stages
  ProcessGroup copies;                // the ranks that have the same part of the model
  ProcessGroup experts;               // the ranks that share the experts of every layer
  bool norm = false;                  // whether the step computes the gradient norm
  Choice reduction;                   // of ddp; an empty name means none
  std::vector<BucketMemory> buckets;  // of ddp
  // Stand-in memory for the calls inside blocks. A rank whose block has failed still makes the block's calls,
  // on this memory, so that no other rank hangs. No memory if blocks make no calls. The exchanges of tokens
  // with experts get memory when it is needed.
  Slice inside_block;
  bool lossy = false;  // the reduction only approximates the sum of the gradients

  bool splits_backward() const {
    return std::any_of(instructions.begin(), instructions.end(),
                       [](const Instruction& i) { return i.what == Instruction::What::backward_weight; });
  }
  int64_t block_of_model(int64_t block) const {  // the block's number in the whole model
    for (const specs::Chunk& chunk : chunks)
      if (block >= chunk.begin && block < chunk.end) return chunk.first_block + block - chunk.begin;
    return block;
  }
  // The communicators that the program needs, each once: those of its calls, and those that gather sharded
  // groups and experts for a checkpoint.
  std::vector<ProcessGroupUse> process_groups() const {
    std::vector<ProcessGroupUse> all;
    const auto add = [&](const ProcessGroupUse& use) {
      if (std::find(all.begin(), all.end(), use) == all.end()) all.push_back(use);
    };
    for (const CollectiveCall& call : calls) add({call.process_group, call.lane});
    for (const GroupLayout& group : layout)
      if (group.process_group.ranks > 1 || group.segments.size() > 1) add({group.process_group});
    if (experts.ranks > 1) add({experts});
    return all;
  }
};

}  // namespace shardmark::strategies
