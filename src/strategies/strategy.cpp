// Turns the layout of a training point (tensor, context, pipeline, data) into what one rank needs to write
// its step: its part of the model and its place in the mesh. Says why a layout is impossible. Adds up the
// memory and the traffic of a program.
#include "strategies/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "specs/specs.h"
#include "strategies/pipeline_timeline.h"
#include "strategies/serving.h"

namespace shardmark::strategies {
namespace {

int64_t chunks_of(const TrainingPoint& t) {
  return pipeline_schedule(t.schedule.name).chunks(t.schedule.options);
}

specs::StageTable part_of(const Point& point, int64_t rank, const std::vector<int64_t>& bounds) {
  const specs::SharedTable whole = specs::model_table(point.training.model);
  const specs::Split split = split_of(point, rank);
  const int64_t stages = point.training.pipeline;
  if (stages == 1 && split == specs::Split{}) return specs::whole_table(whole);
  const Stage stage{specs::mesh_of(point).stage_of(rank), stages, chunks_of(point.training),
                    pipeline_schedule(point.training.schedule.name).placement};
  return specs::stage_table(*whole, split, bounds, stage.parts());
}

double dropout_of(const Choice& model) {
  const OptionValue* const dropout = model.options.find("dropout");
  return dropout == nullptr ? 0 : dropout->get<double>();
}

// With its part of a block's scale, which is a float, or a double in fp64.
double code_bytes_of(const TrainingPoint& t) {
  if (t.products.name != "fp8") return 0;
  return t.scales_blocks() ? 1 + (t.precision == "fp64" ? 8 : 4) / 32.0 : 1;
}

StepInput input_of(const Point& point, const specs::StageTable& part, int64_t rank) {
  const TrainingPoint& t = point.training;
  const specs::Mesh mesh = specs::mesh_of(point);
  return {*part.table,
          mesh.copies().ranks,
          t.accumulation,
          specs::element_bytes(t.precision, t.reduce_dtype),
          specs::optimizer_specs().at(t.optimizer.name).state_elements(t.optimizer.options),
          t.strategy.options,
          /*norm=*/t.clip_norm > 0 || t.precision == "fp16",
          rank,
          std::max<int64_t>(t.recompute, 0),
          specs::masks_documents(t.data),
          mesh,
          part.chunks,
          t.schedule.name,
          /*samples=*/t.batch_size == kLargest ? 1 : t.batch_size,
          /*own_gathers=*/t.gathers == "own",
          /*fused_update=*/t.kernels == "fused" && t.optimizer.name == "adamw" && mesh.ranks_per_copy() == 1,
          /*drops_in_context=*/t.context > 1 && dropout_of(t.model) > 0,
          code_bytes_of(t)};
}

// " (tensor 2 x pipeline 4)"
std::string dimensions_of(const TrainingPoint& t) {
  std::string text;
  for (const auto& [name, ranks] :
       {std::pair("tensor", t.tensor), {"context", t.context}, {"pipeline", t.pipeline}})
    if (ranks > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, ranks);
  return " (" + text + ")";
}

}  // namespace

specs::Split split_of(const Point& point, int64_t rank) {
  const TrainingPoint& t = point.training;
  const specs::Mesh mesh = specs::mesh_of(point);
  return {t.tensor,
          mesh.tensor_group().index_of(rank),
          t.sequence_parallel,
          t.context,
          mesh.context_group().index_of(rank),
          t.expert,
          mesh.expert_group().index_of(rank),
          /*gathers_again=*/t.sequence_parallel && t.recompute == kGatheredInputs,
          t.dispatch};
}

Stage StepInput::stage() const {
  const auto parts = chunks.empty() ? 1 : std::ssize(chunks);
  return {mesh.stage_of(rank), mesh.pipeline, mesh.pipeline == 1 ? 1 : parts,
          pipeline_schedule(order).placement};
}

std::vector<specs::Chunk> StepInput::all_chunks() const {
  return chunks.empty() ? std::vector<specs::Chunk>{{0, std::ssize(model.blocks)}} : chunks;
}

StepInput StepInput::with(const ModelTable& regrouped) const {
  return {regrouped,   ranks,        accumulation,     bytes,     optimizer_elements, options, norm,
          rank,        recompute,    masks_documents,  mesh,      all_chunks(),       order,   samples,
          own_gathers, fused_update, drops_in_context, code_bytes};
}

std::vector<int64_t> bounds_of_parts(const Point& point) {
  const TrainingPoint& t = point.training;
  const specs::SharedTable whole = specs::model_table(t.model);
  const int64_t parts = t.pipeline * chunks_of(t);
  if (parts == 1) return {0, std::ssize(whole->blocks)};
  return specs::part_bounds(*whole, parts, t.stages == "flops");
}

RankStep::RankStep(const Point& point, int64_t rank) : RankStep(point, rank, bounds_of_parts(point)) {}
RankStep::RankStep(const Point& point, int64_t rank, const std::vector<int64_t>& bounds)
    : part_(part_of(point, rank, bounds)), input_(input_of(point, part_, rank)) {}

namespace {

// A program has at least one instruction for each pass of a micro-batch through a block, and every command
// that plans or predicts writes all of them.
std::string too_many_passes(const TrainingPoint& t) {
  constexpr int64_t kMostPasses = 100'000;
  if (t.accumulation <= 1) return {};
  const auto blocks = std::ssize(specs::model_table(t.model)->blocks);
  if (blocks * t.accumulation <= kMostPasses) return {};
  const int64_t most = std::max<int64_t>(1, kMostPasses / blocks);
  return fmt::format(
      "{} micro-batches through {} blocks are {} passes in a step, and at most {} work; take accumulation {} "
      "or "
      "less, with more samples in each micro-batch",
      t.accumulation, blocks, blocks * t.accumulation, kMostPasses, most);
}

// A schedule of several chunks whose rounds have different sizes can deadlock where operations begin in the
// order in which they were started, as NCCL's do (serving.h). Such a layout is refused on every transport, so
// that a suite has the same points on GPUs and on CPUs.
std::string uneven_rounds_impossible(const TrainingPoint& t) {
  const int64_t uneven = t.accumulation % t.pipeline;
  if (chunks_of(t) == 1 || uneven == 0 ||
      schedule_waits(t.schedule, t.pipeline, t.accumulation, Serving::launch_order).empty())
    return {};
  const int64_t less = t.accumulation - uneven;
  return fmt::format(
      "stages of {} with {} micro-batches would wait for each other for ever on NCCL; take accumulation "
      "{}{}, a "
      "multiple of pipeline {}",
      to_text(t.schedule), t.accumulation, less > 0 ? fmt::format("{} or ", less) : "", less + t.pipeline,
      t.pipeline);
}

std::string experts_impossible(const Point& point) {
  const TrainingPoint& t = point.training;
  if (t.expert == 1) return {};
  const specs::Mesh mesh = specs::mesh_of(point);
  const int64_t neighbours =
      mesh.expert_neighbours();  // split_impossible() has checked that tensor divides it
  if (const int64_t copies = mesh.copies().ranks; copies % neighbours != 0)
    return fmt::format(
        "expert {} does not divide the number of ranks that train on different tokens, which is {}", t.expert,
        copies * (t.expert / neighbours));
  if (mesh.has_experts_on_tensor_ranks() && neighbours > 1 && mesh.pipeline_inside && mesh.pipeline > 1)
    return fmt::format(
        "the stages of rank_order pp-dp lie between the tensor ranks of different copies; take "
        "rank_order dp-pp, or expert {}",
        t.tensor);
  if (t.strategy.name == "single" && neighbours > 1)
    return "single leaves copies by themselves, and expert ranks have a part of the experts each; take ddp";
  return {};
}

}  // namespace

std::string layout_impossible(const Point& point) {
  const TrainingPoint& t = point.training;
  if (point.ranks % point.ranks_per_copy() != 0)
    return fmt::format("{} ranks for a copy of the model{} do not divide {} rank{}", point.ranks_per_copy(),
                       dimensions_of(t), point.ranks, point.ranks == 1 ? "" : "s");
  const PipelineSchedule& schedule = pipeline_schedule(t.schedule.name);
  const int64_t parts = t.pipeline * chunks_of(t);
  if (t.pipeline == 1 && parts > 1)
    return fmt::format(
        "schedule {} gives each of several stages {} parts of the model; take pipeline 2 or more",
        t.schedule.name, parts);
  if (std::string reason = too_many_passes(t); !reason.empty()) return reason;
  if (point.ranks_per_copy() == 1 && t.expert == 1 && !t.sequence_parallel) return {};
  const specs::SharedTable whole = specs::model_table(t.model);
  if (std::string reason = specs::split_impossible(t.model.name, *whole, split_of(point, 0)); !reason.empty())
    return reason;
  if (std::string reason = experts_impossible(point); !reason.empty()) return reason;
  if (t.context > 1 && t.strategy.name == "single")
    return "single leaves copies by themselves, and context ranks have a part of a sample each; take ddp";
  const auto blocks = std::ssize(whole->blocks);
  if (parts > blocks)
    return fmt::format("a model of {} blocks cannot be cut into {} parts; at most {} work", blocks, parts,
                       blocks);
  if (std::string reason = schedule.impossible({0, t.pipeline, chunks_of(t)}, t.accumulation);
      !reason.empty())
    return reason;
  return uneven_rounds_impossible(t);
}

std::string serving_impossible(const Point& point, Serving serving) {
  const TrainingPoint& t = point.training;
  if (serving != Serving::serial || t.pipeline == 1 ||
      schedule_waits(t.schedule, t.pipeline, t.accumulation, serving).empty())
    return {};
  return fmt::format(
      "stages of {} would wait for each other for ever, for NCCL runs one operation after the other here; "
      "take "
      "pipeline_schedule gpipe, or NCCL 2.26 and CUDA 12.3 or newer (runtime and driver) and leave "
      "NCCL_LAUNCH_ORDER_IMPLICIT unset",
      to_text(t.schedule));
}

std::string layout_warning(const Point& point) {
  const TrainingPoint& t = point.training;
  const PipelineSchedule& schedule = pipeline_schedule(t.schedule.name);
  // The number of micro-batches that fills the pipeline; for placement v as in schedules/zero_bubble_v.cpp.
  const int64_t filled = schedule.placement == Placement::v ? 2 * t.pipeline - 1 : t.pipeline;
  if (t.accumulation >= filled) return {};
  const auto orders = schedule.orders(t.pipeline, chunks_of(t), t.accumulation);
  return fmt::format(
      "pipeline {} with accumulation {}: of the time of its stages {:.0f} % are the bubble of {}, where "
      "parts of the "
      "model take as long as each other; {} micro-batches or more make it smaller",
      t.pipeline, t.accumulation, 100 * timeline(orders, {}, schedule.placement).idle_share(),
      t.schedule.name, filled);
}

Cost cost_of(const Program& program, const StepInput& input) {
  Cost cost;
  for (const Buffer& buffer : program.buffers) {
    const auto each = static_cast<double>(bytes_of(buffer.element, input.bytes));
    const double bytes = each * static_cast<double>(buffer.most_numel);
    (buffer.use == Use::parameters  ? cost.parameter_bytes
     : buffer.use == Use::gradients ? cost.gradient_bytes
                                    : cost.transient_bytes) += bytes;
  }
  const double state = static_cast<double>(program.most_updated) * static_cast<double>(input.bytes.master);
  if (program.offload)
    // The host holds the state, and copies of the parameters and their gradients.
    cost.offloaded_bytes = state * static_cast<double>(2 + input.optimizer_elements);
  else
    cost.optimizer_bytes = state * static_cast<double>(input.optimizer_elements);
  for (const CollectiveCall& call : program.calls) cost.traffic_bytes += call.ring_bytes();
  cost.num_operations = static_cast<int64_t>(program.calls.size());
  return cost;
}

}  // namespace shardmark::strategies
