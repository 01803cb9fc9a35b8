#include "analysis/frame/known.h"

#include <algorithm>

#include "schema/record.h"
#include "specs/specs.h"
#include "strategies/choice_kinds.h"
#include "strategies/strategy.h"

namespace shardmark {
specs::SharedTable known_table(const Choice& model) {
  const auto& known = Registry<specs::ModelSpec>::instance();
  if (!known.contains(model.name)) return nullptr;
  try {
    return specs::model_table(resolve(model, known.get(model.name, "model").options, "model"));
  } catch (const UsageError&) {
    return nullptr;
  }
}

std::optional<int64_t> known_bytes(const std::string& dtype) {
  if (dtype == "fp8") return 1;  // imports have it
  const auto& names = specs::dtype_names();
  if (std::find(names.begin(), names.end(), dtype) == names.end()) return std::nullopt;
  return specs::dtype_bytes(dtype);
}

std::optional<KnownTokens> known_tokens(const Point& point, int64_t ranks_per_node) {
  const CollectivePoint& c = point.collective;
  const Choice parts = choice_or_name(c.parts);
  const std::optional<int64_t> element_bytes = known_bytes(c.dtype);
  if (parts.name != "experts" || !element_bytes) return std::nullopt;
  try {
    const specs::TokenExchange exchange(resolve(parts, parts_kind().options(parts.name), "parts"));
    const int64_t elements = c.bytes / *element_bytes, tokens = elements / exchange.width;
    if (!exchange_impossible(exchange, point.ranks, elements).empty()) return std::nullopt;
    if (ranks_per_node == 0 || point.ranks % ranks_per_node != 0) ranks_per_node = point.ranks;
    return KnownTokens{tokens, token_traffic(exchange, point.ranks, ranks_per_node, tokens)};
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::optional<int64_t> known_master_bytes(const std::string& precision) {
  for (const auto& spec : specs::precision_specs())
    if (spec.name == precision) return spec.master_bytes;
  return std::nullopt;
}

std::optional<int64_t> known_optimizer_state(const Choice& optimizer) {
  const auto found = specs::optimizer_specs().find(optimizer.name);
  if (found == specs::optimizer_specs().end()) return std::nullopt;
  try {
    return found->second.state_elements(resolve(optimizer, found->second.options, "optimizer").options);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::optional<Point> known_point(Point point) {
  constexpr int64_t kMostRanks = 1 << 20, kMostMicroBatches = 1 << 12;  // a program grows with the latter
  TrainingPoint& t = point.training;
  const auto is_from_1_to = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
  if (!is_from_1_to(point.ranks, kMostRanks) || !is_from_1_to(t.accumulation, kMostMicroBatches) ||
      t.batch_size < 1 || !known_table(t.model) || !known_optimizer_state(t.optimizer) ||
      !known_master_bytes(t.precision))
    return std::nullopt;
  try {
    if (!t.chosen.empty()) t.strategy = choice_from_text(t.chosen);
    const strategies::Strategy& spec = strategies::strategy(t.strategy.name);
    t.strategy = resolve(t.strategy, spec.options, "strategy");
    t.model = resolve(t.model, known_options("model", t.model), "model");
    t.optimizer = resolve(t.optimizer, known_options("optimizer", t.optimizer), "optimizer");
    t.schedule = resolve(t.schedule, known_options("pipeline_schedule", t.schedule), "pipeline schedule");
    for (const int64_t ranks : {t.tensor, t.context, t.expert, t.pipeline})
      if (!is_from_1_to(ranks, kMostRanks)) return std::nullopt;
    if (!strategies::layout_impossible(point).empty()) return std::nullopt;
    if (!spec.impossible(strategies::RankStep(point).input()).empty()) return std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return point;
}

std::optional<strategies::Program> known_program(const Point& point) {
  const auto known = known_point(point);
  if (!known) return std::nullopt;
  return strategies::strategy(known->training.strategy.name).step(strategies::RankStep(*known).input());
}

double known_value_bytes(const Point& point) {
  const auto program = known_program(point);
  if (!program || program->buckets.empty()) return Measures::kNone;
  double bytes = 0;
  for (const auto& bucket : program->buckets) bytes += bucket.value_bytes;
  return bytes;
}

Choice strategy_from_text(const std::string& text) {
  const Choice written = choice_from_text(text);
  return resolve(written, strategies::strategy(written.name).options, "strategy");
}

std::vector<int64_t> known_bucket_bytes(const Point& point) {
  const auto known = known_point(point);
  const auto program = known_program(point);
  if (!program) return {};
  const int64_t element_bytes =
      specs::element_bytes(known->training.precision, known->training.reduce_dtype).reduce;
  std::vector<int64_t> sizes;
  for (const auto& bucket : program->buckets) sizes.push_back(bucket.gradients.numel * element_bytes);
  return sizes;
}

}  // namespace shardmark
