// Writes a line for each buffer and each instruction.
#include "strategies/program_text.h"

#include <fmt/format.h>

#include <set>

#include "base/units.h"
#include "specs/specs.h"

namespace shardmark::strategies {
namespace {

using What = Instruction::What;

std::string name_of(const Program& program, const Slice& slice) {
  return slice.buffer < 0 ? "the sum of squares" : program.buffers[static_cast<size_t>(slice.buffer)].name;
}

double bytes_of(const Program& program, const Instruction& calls) {
  double bytes = 0;
  for (int64_t c = calls.index; c < calls.index + calls.count; ++c)
    bytes += program.calls[static_cast<size_t>(c)].bytes;
  return bytes;
}

// For example "all_gather #12-14 of h.3".
std::string calls_text(const Program& program, const Instruction& i, const ModelTable& model) {
  const CollectiveCall& first = program.calls[static_cast<size_t>(i.index)];
  // A message moves one way. The exchange of a tied gradient has both sides, and is printed as send_recv.
  const bool is_message =
      first.what == Collective::send_recv && (first.in.numel == 0) != (first.out.numel == 0);
  std::string text = fmt::format("{} #{}",
                                 !is_message           ? first.name()
                                 : first.in.numel == 0 ? "receive"
                                                       : "send",
                                 i.index);
  if (i.count > 1) text += fmt::format("-{}", i.index + i.count - 1);
  if (first.group) text += " of " + model.groups[static_cast<size_t>(*first.group)].name;
  return text;
}

std::string start_text(const Program& program, const Instruction& i, const ModelTable& model) {
  const CollectiveCall& first = program.calls[static_cast<size_t>(i.index)];
  const std::string ranks =
      first.process_group.stride == 1
          ? fmt::format("{} ranks", first.process_group.ranks)
          : fmt::format("{} ranks, every {}th", first.process_group.ranks, first.process_group.stride);
  if (first.what == Collective::send_recv && (first.in.numel == 0 || first.out.numel == 0))
    return fmt::format("start {} #{}, {} {} stage {}", first.in.numel == 0 ? "receive" : "send", i.index,
                       format_bytes(first.bytes), first.in.numel == 0 ? "from" : "to",
                       first.root.value_or(0));
  const std::string where = first.inside_block && first.inside_block->row > 0
                                ? "by the block itself, if its router chooses all experts alike"
                            : first.inside_block && first.inside_block->hidden_by > 0
                                ? "by the block itself, while it computes other gradients"
                            : first.inside_block ? "by the block itself"
                                                 : "into " + name_of(program, first.out);
  return fmt::format("start {}, {} over {}, {}", calls_text(program, i, model),
                     format_bytes(bytes_of(program, i)), ranks, where);
}

const char* word_of(Use use) {
  return use == Use::parameters ? "parameters" : use == Use::gradients ? "gradients" : "transient";
}

std::string memory_text(const Program& program, const StepInput& input) {
  size_t width = 0;
  for (const Buffer& buffer : program.buffers) width = std::max(width, buffer.name.size());
  std::string text = "memory of a rank\n";
  for (const Buffer& buffer : program.buffers)
    text +=
        fmt::format("  {:<{}}  {:<10}  {:>10}\n", buffer.name, width, word_of(buffer.use),
                    format_bytes(static_cast<double>(buffer.numel * bytes_of(buffer.element, input.bytes))));
  const auto state = static_cast<double>(program.most_updated * input.bytes.master);
  // The host then holds the state, and copies of the parameters and of their gradients, as in cost_of().
  if (program.offload)
    return text + fmt::format("  {:<{}}  {:<10}  {:>10}\n", "optimizer state and copies", width, "host",
                              format_bytes(state * static_cast<double>(2 + input.optimizer_elements)));
  return text + fmt::format("  {:<{}}  {:<10}  {:>10}\n", "optimizer state", width, "optimizer",
                            format_bytes(state * static_cast<double>(input.optimizer_elements)));
}

std::string sums_text(const Program& program, const StepInput& input) {
  const Cost cost = cost_of(program, input);
  return fmt::format(
      "{} calls, {} sent by each rank around rings; {} of parameters, {} of gradients, {} of "
      "optimizer state, {} transient\n",
      cost.num_operations, format_bytes(cost.traffic_bytes), format_bytes(cost.parameter_bytes),
      format_bytes(cost.gradient_bytes), format_bytes(cost.optimizer_bytes),
      format_bytes(cost.transient_bytes));
}

}  // namespace

std::string describe(const Program& program, const Instruction& i, const ModelTable& model) {
  const auto block = [&] { return model.blocks[static_cast<size_t>(i.index)].name; };
  const auto group = [&] { return model.groups[static_cast<size_t>(i.index)].name; };
  switch (i.what) {
    case What::data:
      return "load a micro-batch";
    case What::forward:
      return "forward of " + block();
    case What::backward:
      return "backward of " + block();
    case What::recompute:
      return "forward again of " + block();
    case What::backward_input:
      return "backward of the input of " + block();
    case What::backward_weight:
      return "backward of the parameters of " + block();
    case What::update:
      return "update";
    case What::start:
      return start_text(program, i, model);
    case What::wait:
      return "wait for " + calls_text(program, i, model);
    case What::bind:
      return fmt::format("parameters of {} are in {}", group(), name_of(program, i.to));
    case What::bind_gradients:
      return fmt::format("gradients of {} are in {}", group(), name_of(program, i.to));
    case What::reshard:
      return "reshard " + group();
    case What::copy:
      return fmt::format("copy {} to {}", name_of(program, i.from), name_of(program, i.to));
    case What::add:
      return fmt::format("add {} to {}", name_of(program, i.from), name_of(program, i.to));
    case What::zero:
      return "zero " + name_of(program, i.to);
    case What::pack:
      return fmt::format("pack bucket {} by {}", i.index, program.reduction.name);
    case What::combine:
      return fmt::format("combine bucket {} by {}", i.index, program.reduction.name);
    case What::unpack:
      return fmt::format("unpack bucket {} by {}", i.index, program.reduction.name);
    case What::squares:
      return "sum the squares of the gradients";
    case What::apply:
      return program.updated.empty() || program.updated.front().copy.numel == 0
                 ? "apply the optimizer"
                 : fmt::format("apply the optimizer, copy to {}, zero {}",
                               name_of(program, program.updated.front().copy),
                               name_of(program, program.updated.front().gradients));
  }
  return {};
}

std::string to_text(const Program& program, const StepInput& input) {
  const ModelTable& model = program.regrouped ? *program.regrouped : input.model;
  std::string text = memory_text(program, input) + "\n";
  std::set<int64_t> in_flight;
  for (int step = 0; step < 2; ++step) {  // the second one shows what the first has left in flight
    for (const Instruction& i : program.instructions) {
      // Only waits and starts number calls; `index` of other instructions is a block, group or bucket.
      for (int64_t c = i.index; i.is_communication() && c < i.index + i.count; ++c) {
        if (i.what == What::start) in_flight.insert(c);
        if (i.what == What::wait) in_flight.erase(c);
      }
      if (step == 0) continue;
      std::string meanwhile;
      for (const int64_t c : in_flight) meanwhile += fmt::format(" #{}", c);
      if (i.is_compute() && !meanwhile.empty())
        text += fmt::format("{:<40}  in flight:{}\n", describe(program, i, model), meanwhile);
      else if (i.is_compute())
        text += describe(program, i, model) + "\n";
      else
        text += "    " + describe(program, i, model) + "\n";
    }
  }
  return text + "\n" + sums_text(program, input);
}

}  // namespace shardmark::strategies
