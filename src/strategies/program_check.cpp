// Walks through a program as a rank would, and keeps track of the calls in flight and of what slots hold.
#include "strategies/program_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strategies/program_text.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

// The memory that calls in flight use: what they write, and what they only read. A call in place counts as a
// write alone. Several calls may read the same memory. Few calls are in flight at a time, so that every one
// of them is looked at.
class InFlight {
 public:
  void add(const CollectiveCall& call) {
    writes_.push_back(call.out);
    if (!is_inside(call.in, call.out)) reads_.push_back(call.in);
  }
  void remove(const CollectiveCall& call) {
    erase_one(writes_, call.out);
    if (!is_inside(call.in, call.out)) erase_one(reads_, call.in);
  }
  bool forbids_reading(const Slice& slice) const { return overlaps(writes_, slice); }
  bool forbids_writing(const Slice& slice) const {
    return overlaps(writes_, slice) || overlaps(reads_, slice);
  }

 private:
  using Slices = std::vector<Slice>;
  static bool is_inside(const Slice& part, const Slice& whole) {
    return part.numel == 0 || (part.buffer == whole.buffer && part.begin >= whole.begin &&
                               part.begin + part.numel <= whole.begin + whole.numel);
  }
  static void erase_one(Slices& slices, const Slice& slice) {
    const auto found = std::find(slices.begin(), slices.end(), slice);
    if (found != slices.end()) slices.erase(found);
  }
  static bool overlaps(const Slices& slices, const Slice& slice) {
    return slice.numel > 0 && std::any_of(slices.begin(), slices.end(), [&](const Slice& other) {
             return other.numel > 0 && other.overlaps(slice);
           });
  }

  Slices writes_, reads_;
};

// Runs the program symbolically, instruction by instruction: nothing is computed, but it is known which
// calls are in flight, where each group is bound, and which group each slot holds. The program runs twice.
// In the first step, a wait that comes before the start of its call is allowed, because it waits for the
// call of the step before; in the second step that call must be in flight.
class ProgramWalk {
 public:
  ProgramWalk(const Program& program, const ModelTable& model)
      : p_(program),
        model_(model),
        state_(p_.calls.size()),
        parameters_(p_.parameters),
        gradients_(p_.gradients) {}

  std::string find() {
    for (int step = 0; step < 2; ++step)
      for (const Instruction& instruction : p_.instructions)
        if (std::string wrong = check(instruction, step > 0); !wrong.empty())
          return fmt::format("{}: {}: {}", p_.strategy, describe(p_, instruction, model_), wrong);
    return {};
  }

 private:
  struct CallState {
    bool has_started = false, in_flight = false;
  };

  std::string check(const Instruction& i, bool second_step) {
    switch (i.what) {
      case What::start:
        return each_call(i, [&](size_t call) { return start(call); });
      case What::wait:
        return each_call(i, [&](size_t call) { return wait(call, second_step); });
      case What::bind:
        parameters_[size_t(i.index)] = i.to;
        return holds(i.to, i.index);
      case What::bind_gradients:
        gradients_[size_t(i.index)] = i.to;
        return {};
      case What::reshard:
        parameters_[size_t(i.index)] = {};
        return {};
      case What::forward:
      case What::recompute:
      case What::backward:
      case What::backward_input:
      case What::backward_weight:
        return read(i.from) + write(i.to) + compute(i.index, i.what);
      case What::pack:
      case What::combine:
      case What::unpack: {
        const BucketMemory& bucket = p_.buckets[size_t(i.index)];
        for (const Slice& slice : bucket.scratch)
          if (flying_.forbids_writing(slice)) return "its memory is in use by a call in flight";
        return write(bucket.gradients);
      }
      case What::apply:
        for (const OptimizerSlices& shard : p_.updated)
          if (std::string wrong = write(shard.parameters) + update_with(shard); !wrong.empty()) return wrong;
        return {};
      default:
        return write(i.to) + read(i.from);
    }
  }

  template <class Check>
  static std::string each_call(const Instruction& i, const Check& check) {
    std::string wrong;
    for (int64_t call = i.index; call < i.index + i.count && wrong.empty(); ++call)
      wrong = check(size_t(call));
    return wrong;
  }

  std::string start(size_t index) {
    const CollectiveCall& call = p_.calls[index];
    CallState& state = state_[index];
    if (state.in_flight) return "starts again while it is in flight";
    if (std::string wrong = write(call.out) + read(call.in); !wrong.empty()) return wrong;
    state.has_started = state.in_flight = true;
    flying_.add(call);
    if (call.group) {
      // The call brings a group into memory. Whatever was gathered into an overlapping range is lost.
      std::erase_if(contents_, [&](const auto& written) { return written.first.overlaps(call.out); });
      contents_.emplace_back(call.out, *call.group);
    }
    return {};
  }

  std::string wait(size_t index, bool second_step) {
    if (index >= state_.size()) return "no such call";
    CallState& state = state_[index];
    if (!state.in_flight)
      return second_step || state.has_started ? "a wait for a call that is not in flight" : "";
    state.in_flight = false;
    flying_.remove(p_.calls[index]);
    return {};
  }

  std::string compute(int64_t block, What what) {
    for (size_t group = 0; group < model_.groups.size(); ++group) {
      if (block < model_.groups[group].first_block || block > model_.groups[group].last_block) continue;
      // The gradients of parameters are products of a block's inputs and of its outputs' gradients, so that
      // backward_weight reads no parameters. Forward and backward_input add to no gradients.
      if (what != What::backward_weight) {
        if (parameters_[group].buffer < 0)
          return "no buffer is bound to the parameters of " + model_.groups[group].name;
        if (std::string wrong = read(parameters_[group]); !wrong.empty()) return wrong;
      }
      if (what != What::backward && what != What::backward_weight) continue;
      if (gradients_[group].buffer < 0)
        return "no buffer is bound to the gradients of " + model_.groups[group].name;
      if (std::string wrong = write(gradients_[group]); !wrong.empty()) return wrong;
    }
    return {};
  }

  // The group that is bound to a slot must be the one that was gathered into it last.
  std::string holds(const Slice& slot, int64_t group) const {
    for (const auto& [slice, held] : contents_)
      if (held != group && slice.overlaps(slot)) return "its slot holds " + model_.groups[size_t(held)].name;
    const bool any = std::any_of(contents_.begin(), contents_.end(),
                                 [&](const auto& written) { return written.first.overlaps(slot); });
    return any ? "" : "nothing was gathered into its slot";
  }

  std::string read(const Slice& slice) const {
    return flying_.forbids_reading(slice) ? name(slice) + " is read while a call in flight writes it" : "";
  }
  std::string write(const Slice& slice) const {
    return flying_.forbids_writing(slice) ? name(slice) + " is written while a call in flight uses it" : "";
  }
  std::string update_with(const OptimizerSlices& shard) const {
    return shard.copy.numel == 0 ? read(shard.gradients) : write(shard.copy) + write(shard.gradients);
  }
  std::string name(const Slice& slice) const {
    return slice.buffer < 0 ? "the sum of squares" : p_.buffers[size_t(slice.buffer)].name;
  }

  const Program& p_;
  const ModelTable& model_;
  std::vector<CallState> state_;
  std::vector<Slice> parameters_, gradients_;        // [group]
  std::vector<std::pair<Slice, int64_t>> contents_;  // (slot, group): what was gathered last
  InFlight flying_;
};

}  // namespace

std::string wrong_with(const Program& program, const ModelTable& model) {
  return ProgramWalk(program, model).find();
}

std::string calls_that_differ(const Program& program, const Program& other) {
  if (program.calls.size() != other.calls.size())
    return fmt::format("{}: {} calls and {} calls", program.strategy, program.calls.size(),
                       other.calls.size());
  for (size_t i = 0; i < program.calls.size(); ++i)
    if (!(program.calls[i] == other.calls[i]))
      return fmt::format("{}: call #{} is {} of {} bytes and {} of {} bytes", program.strategy, i,
                         program.calls[i].name(), program.calls[i].bytes, other.calls[i].name(),
                         other.calls[i].bytes);
  return {};
}

}  // namespace shardmark::strategies
