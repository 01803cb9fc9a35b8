// What identifies a point, and how it is named in messages.
#include "schema/point.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "schema/content_hash.h"
#include "schema/json.h"

namespace shardmark {
namespace {

// nlohmann::json keeps keys sorted: the text, and with it the hash, does not depend on the order of writing.
using Canonical = nlohmann::json;

Canonical canonical(const Choice& choice) {
  return {{"name", choice.name}, {"options", Canonical(to_json(choice.options))}};
}

Canonical canonical(const TrainingPoint& t) {
  return {
      {"model", canonical(t.model)},         {"data", canonical(t.data)}, {"strategy", canonical(t.strategy)},
      {"optimizer", canonical(t.optimizer)}, {"precision", t.precision},  {"batch_size", t.batch_size},
      {"reduce_dtype", t.reduce_dtype},      {"clip_norm", t.clip_norm},  {"checkpointing", t.checkpointing},
      {"accumulation", t.accumulation},      {"scaling", t.scaling}};
}

Canonical canonical(const CollectivePoint& c) {
  return {{"operation", c.operation},
          {"dtype", c.dtype},
          {"reduction", c.reduction},
          {"bytes", c.bytes},
          {"in_place", c.in_place}};
}

Canonical canonical(const Sampling& s) {
  Canonical canonical = {{"warmup_steps", s.warmup_steps},
                         {"min_steps", s.min_steps},
                         {"max_steps", s.max_steps},
                         {"time_limit", s.time_limit_s},
                         {"precision", s.precision}};
  if (s.duration_s > 0) canonical["duration"] = s.duration_s;  // other points are what they always were
  return canonical;
}

bool is_training(const Point& point) {
  ENSURE(is_known_workload(point), "no workload '" + point.workload + "'");
  return point.workload != "collective";
}

std::string ranks_text(int64_t ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

// What is not at its default.
std::string extras_text(const TrainingPoint& t) {
  std::string text = t.precision == "fp32" ? "" : " " + t.precision;
  if (t.reduce_dtype != "same") text += " reduced in " + t.reduce_dtype;
  if (t.clip_norm > 0) text += fmt::format(" clipped at {}", t.clip_norm);
  if (t.checkpointing > 0) text += fmt::format(" checkpointing every {}", t.checkpointing);
  return text;
}

}  // namespace

bool is_known_workload(const Point& point) {
  return point.workload == "training" || point.workload == "train" || point.workload == "collective";
}

std::string point_id(const Point& point) {
  const Canonical whole = {
      {"workload", point.workload},
      {"ranks", point.ranks},
      {"transport", point.transport},
      {"seed", point.seed},
      {"repeat", point.repeat},
      {"sampling", canonical(point.sampling)},
      {"work", is_training(point) ? canonical(point.training) : canonical(point.collective)}};
  return hash_text(hash_bytes(whole.dump(-1, ' ', false, Canonical::error_handler_t::replace)));
}

std::string to_text(const Point& point) {
  const TrainingPoint& t = point.training;
  const CollectivePoint& c = point.collective;
  if (is_training(point))
    return fmt::format("training {} {} {} batch {}{}{}", to_text(t.model), to_text(t.strategy),
                       ranks_text(point.ranks),
                       t.batch_size == kLargest ? "largest" : std::to_string(t.batch_size),
                       t.accumulation > 1 ? fmt::format(" x {}", t.accumulation) : "", extras_text(t));
  return fmt::format("{} {}{} {} {}", c.operation, c.dtype, c.reduction == "none" ? "" : " " + c.reduction,
                     format_bytes(static_cast<double>(c.bytes)), ranks_text(point.ranks));
}

}  // namespace shardmark
