// Trains on one device, block by block, with plain autograd. There is no program, flat buffer or collective,
// so a bug in those cannot hide by affecting the reference in the same way.
#include "sweep/workloads/reference.h"

#include <fmt/format.h>

#include <cmath>

#include "comm/nccl/lost_gpu.h"
#include "device/meter.h"
#include "executor/optim/optimizer.h"
#include "executor/training_setup.h"

namespace shardmark {
namespace {

// Whether blocks use statistics of the samples of all ranks, as synchronised batch norm does.
bool shares_statistics(const Point& point) {
  const specs::SharedTable table = specs::model_table(point.training.model);
  return std::any_of(table->blocks.begin(), table->blocks.end(),
                     [](const specs::BlockSpec& block) { return !block.forward_calls.empty(); });
}

// The batches whose mean gradient one step applies. If blocks share statistics, one batch holds the samples
// of all ranks; otherwise each rank's samples are a batch of their own.
std::vector<Batch> batches_of_step(const Point& point, const DataSource& source, int64_t replica,
                                   int64_t step) {
  const bool merged = replica < 0 && shares_statistics(point);
  std::vector<Batch> batches;
  for (int64_t micro = 0; micro < point.training.accumulation; ++micro) {
    std::vector<Draw> draws;
    for (int64_t rank = 0; rank < point.data_ranks(); ++rank) {
      if (replica >= 0 && rank != replica) continue;
      const auto part = DistributedSampler(point, source.size(), rank).draw(step, micro);
      draws.insert(draws.end(), part.begin(), part.end());
      if (!merged) batches.push_back(source.fetch(std::exchange(draws, {})));
    }
    if (merged) batches.push_back(source.fetch(draws));
  }
  return batches;
}

ReferenceRun train(const Point& point, const DataSource& source, at::Device device, int64_t replica,
                   Heartbeat& heartbeat) {
  const meter::Strict strict;  // no other rank waits for this one
  const auto& t = point.training;
  const auto model = make_model(t.model, precision_from(t.precision, "same").master, device);
  model->fp8 = fp8_of(t.products);
  materialize(*model, point.seed);
  model->draws = false;
  std::vector<OptimizerShard> shards;
  for (const auto& group : model->table().groups) {
    for (const auto& spec : group.parameters) {
      at::Tensor& parameter = model->parameter(spec.name);
      parameter.mutable_grad() = at::zeros_like(parameter);
      shards.push_back({parameter.detach().view(-1), parameter.grad().view(-1)});
    }
  }
  const auto optimizer = make_optimizer(t.optimizer, shards, device);
  GradientGuard guard(t.clip_norm, /*scales_loss=*/false, device);

  ReferenceRun run;
  for (int64_t step = 0; step < kReferenceSteps; ++step) {
    model->step = step;
    const auto batches = batches_of_step(point, source, replica, step);
    model->loss_gradient = [&](at::ScalarType type) {
      return at::full({}, 1 / static_cast<double>(batches.size()), at::TensorOptions(device).dtype(type));
    };
    double loss = 0;
    for (const auto& host_batch : batches) {
      const Batch batch = model->prepared(host_batch);
      at::Tensor h = batch.inputs;
      for (size_t b = 0; b < model->blocks().size(); ++b) {
        heartbeat.block(kReferenceStage, static_cast<int64_t>(b));
        h = model->blocks()[b].forward(h, batch);
      }
      heartbeat.stage(kReferenceStage);
      torch::autograd::backward({h}, {model->loss_gradient(h.scalar_type())});
      loss += h.item<double>() / static_cast<double>(batches.size());
    }
    double squares = 0;
    for (const auto& shard : shards) squares += shard.gradients.to(at::kDouble).square().sum().item<double>();
    if (guard.needs_norm())
      guard.inspect(at::full({}, squares, at::TensorOptions(device).dtype(at::kDouble)));
    run.losses.push_back(loss);
    run.norms.push_back(std::sqrt(squares));
    optimizer->step(guard.control());
    for (auto& shard : shards) shard.gradients.zero_();
  }
  run.expert_load = expert_load(*model);
  return run;
}

ReferenceRun impossible(const std::string& why, bool is_too_large) {
  ReferenceRun run;
  run.impossible = why;
  run.is_too_large = is_too_large;
  return run;
}

ReferenceRun too_large() {
  return impossible("one device does not have enough memory for it", /*is_too_large=*/true);
}

}  // namespace

ReferenceRun run_reference(const Point& point, const DataSource& source, at::Device device, int64_t replica,
                           Heartbeat& heartbeat) {
  try {
    return train(point, source, device, replica, heartbeat);
  } catch (const OutOfMemory&) {
    return too_large();
  } catch (const c10::OutOfMemoryError&) {
    return too_large();
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    return impossible(std::string("training on one device failed: ") + error.what(), /*is_too_large=*/false);
  }
}

std::optional<Point> with_fewest_layers(Point point) {
  TrainingPoint& t = point.training;
  const OptionValue* const option = t.model.options.find("layers");
  if (option == nullptr || !option->is<int64_t>()) return std::nullopt;
  const auto all = option->get<int64_t>();
  const strategies::Strategy& how = strategies::strategy(t.strategy.name);
  for (int64_t layers = 1; layers < all; ++layers) {
    t.model.options["layers"] = layers;
    const auto kind = specs::model_spec(t.model.name).options;
    try {
      static_cast<void>(resolve(t.model, kind, "model"));
    } catch (const UsageError&) {
      continue;  // the model does not come with this number
    }
    if (strategies::layout_impossible(point).empty() &&
        how.impossible(strategies::RankStep(point).input()).empty())
      return point;
  }
  return std::nullopt;
}

std::string reference_key(const Point& point, int64_t replica) {
  const auto& t = point.training;
  return fmt::format("{} {} {} {} {} ranks={} batch={} accumulation={} seed={} replica={} clip={}",
                     to_text(t.model), to_text(t.data), to_text(t.optimizer), t.precision,
                     to_text(t.products), point.data_ranks(), t.batch_size, t.accumulation, point.seed,
                     replica, t.clip_norm);
}

}  // namespace shardmark
