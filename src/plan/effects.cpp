// Finds values that change nothing, in two ways. idle_values() applies rules: one for each of Acts
// (schema/axes.h), and one for each option that acts only sometimes. same_as_earlier() compares the
// programs of whole steps, which also finds what no rule knows.
#include "plan/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "plan/plan.h"
#include "plan/warnings.h"
#include "schema/content_hash.h"
#include "schema/json.h"
#include "specs/collectives.h"
#include "specs/parts.h"
#include "specs/specs.h"
#include "strategies/choice_kinds.h"
#include "strategies/program_hash.h"
#include "strategies/stages.h"
#include "strategies/traits.h"

namespace shardmark {
namespace {

// Each of these returns why a value on the axis would do nothing at this point; empty if it acts.

std::string of_sums(const Point& point) {
  const std::string& precision = point.training.precision;
  if (!specs::element_bytes(precision, "fp32").converts())
    return fmt::format("gradients of {} are not narrower than that; take precision bf16 or fp16", precision);
  if (point.training.strategy.name != "auto" &&
      !strategies::traits_of(point.training.strategy.name).communicates)
    return fmt::format("{} communicates no gradients; take another strategy", point.training.strategy.name);
  if (point.data_ranks() * point.training.context != 1 || adds_as_reduced(point.training)) return {};
  return "one rank has all gradients of its part of the model; take more ranks";
}

std::string of_recomputing(const Point& point) {
  const TrainingPoint& t = point.training;
  if (t.recompute == kGatheredInputs)
    return t.sequence_parallel && t.tensor > 1
               ? ""
               : "no rank gathers inputs; take tensor 2 or more with sequence_parallel";
  const auto blocks = std::ssize(specs::model_table(t.model)->blocks);
  const int64_t every = std::max<int64_t>(t.recompute, 1);
  // The backward pass of the last block follows directly on its forward pass, so its activations are kept
  // anyway. Only in a pipeline may other micro-batches come in between.
  if (every < blocks || (every == blocks && t.pipeline > 1)) return {};
  return fmt::format("{} has {} block{}, and the last one is not recomputed; take a smaller number",
                     t.model.name, blocks, blocks == 1 ? "" : "s");
}

std::string of_gathers(const Point& point) {
  if (point.training.strategy.name == "auto") return {};         // strategy_reason() gives the reason
  if (!strategies::layout_impossible(point).empty()) return {};  // its reason says more
  const std::string reason = gathers_reason(point);
  return reason.substr(0, reason.find(';')) +
         (reason.empty() ? "" : "; take a strategy that does, on several ranks");
}

std::string of_tensor(const Point& point) {
  if (point.training.tensor > 1) return {};
  return "tensor is 1, over whose ranks it would cut tokens; take tensor 2 or more";
}

std::string of_experts(const Point& point) {
  if (point.training.expert > 1) return {};
  return "every rank has all experts; take expert 2 or more";
}

std::string of_stages(const Point& point) {
  if (point.training.pipeline > 1) return {};
  return "the model is not cut into the stages of a pipeline; take pipeline 2 or more";
}

std::string of_rank_order(const Point& point) {
  const TrainingPoint& t = point.training;
  if (t.pipeline == 1)
    return "only copies of the model are placed, no stages of a pipeline; take pipeline 2 or more";
  if (point.data_ranks() * t.context != 1) return {};
  return "only the stages of one copy of the model are placed; take more ranks";
}

std::string of_collective(const Point& point, bool specs::CollectiveRow::*has, const char* what) {
  const specs::CollectiveRow& row = specs::operation(point.collective.operation);
  if (row.*has) return {};
  std::string others;
  for (const specs::CollectiveRow& other : specs::operations())
    if (other.*has) others += (others.empty() ? "" : ", ") + other.name;
  return fmt::format("{} {}; take {}", row.name, what, others);
}

}  // namespace

std::string why_idle(const AxisRow& axis, const Point& point) {
  switch (axis.acts) {
    case Acts::unsaid:
    case Acts::always:
    case Acts::where_refused_else:
      return {};
    case Acts::with_narrow_sums:
      return of_sums(point);
    case Acts::with_blocks_to_recompute:
      return of_recomputing(point);
    case Acts::with_gathers:
      return of_gathers(point);
    case Acts::with_tensor:
      return of_tensor(point);
    case Acts::with_experts:
      return of_experts(point);
    case Acts::with_stages:
      return of_stages(point);
    case Acts::with_two_orders:
      return of_rank_order(point);
    case Acts::with_reductions:
      return of_collective(point, &specs::CollectiveRow::reduces, "does not reduce");
    case Acts::with_in_place:
      return of_collective(point, &specs::CollectiveRow::in_place, "has no form in place");
    case Acts::with_parts:
      return of_collective(point, &specs::CollectiveRow::has_parts, "has equal parts");
  }
  return {};
}

std::string value_text(const AxisRow& axis, const Point& point) {
  return visit_member(axis, point, [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, Choice>)
      return to_text(value);
    else if constexpr (std::is_same_v<T, int64_t>) {
      for (const NamedNumber& named : axis.named)
        if (named.word != nullptr && named.number == value) return std::string(named.word);
      return fmt::format("{}", value);
    } else
      return fmt::format("{}", value);
  });
}

namespace {

std::string value_text(const OptionValue& value) {
  return value.is<std::string>() ? value.get<std::string>() : dump_line(to_json(value));
}

// Each of these returns why the value of an option does nothing at this point; empty if it acts.

std::string of_prefetch(const Point&, const Options& options) {
  if (options.at("shard") == "full") return {};
  return fmt::format("shard is {}, and parameters are whole; take shard full",
                     value_text(options.at("shard")));
}

std::string of_document_tokens(const Point&, const Options& options) {
  if (options.at("documents") != "joined") return {};
  return "documents are joined to one text; take documents packed or masked";
}

// An option that acts only sometimes. There is none for models: a point's model stays as it is written,
// because a checkpoint is resumed with the same model on any number of ranks.
struct OptionRule {
  const char* axis;
  const char* choice;
  const char* option;
  std::string (*why_idle)(const Point& point, const Options& options);
};
constexpr OptionRule kOptionRules[] = {
    {"strategy", "fsdp", "prefetch", of_prefetch},
    {"data", "tokens", "begin", of_document_tokens},
    {"data", "tokens", "end", of_document_tokens},
};

void add_idle_options(const OptionRule& rule, const Point& point, std::vector<IdleValue>& idle) {
  const AxisRow& axis = axis_named(rule.axis);
  const AxisValue of_axis = value_of(axis, point);
  const auto* const choice = std::get_if<Choice>(&of_axis);
  if (choice == nullptr || choice->name != rule.choice) return;
  for (const OptionSpec& spec : kind_of(rule.axis).options(rule.choice)) {
    if (spec.key != rule.option || spec.default_value == choice->options.at(spec.key)) continue;
    if (std::string why = rule.why_idle(point, choice->options); !why.empty())
      idle.push_back({&axis, rule.option, value_text(choice->options.at(spec.key)), std::move(why)});
  }
}

// An axis in one block, or an option on that axis: number of the block, key of the axis, name of the option,
// name of its choice. The last two are empty for an axis.
using Place = std::tuple<size_t, std::string, std::string, std::string>;

std::string reason_text(const IdleValue& value, const Point& point) {
  const Point instead = without({value}, point);
  const AxisValue of_axis = value_of(*value.axis, instead);
  const std::string usual = value.option.empty()
                                ? value_text(*value.axis, instead)
                                : value_text(*std::get<Choice>(of_axis).options.find(value.option));
  return fmt::format("{} changes nothing here: {}, or leave {} at {}", value.text(point, value.value),
                     value.reason, value.option.empty() ? value.axis->key : value.option, usual);
}

// Removes from a point all that the program of its step expresses. Points that then are equal differ only in
// what their programs show, so hash_of_step() decides whether they run the same step.
Point without_program(Point point) {
  TrainingPoint& t = point.training;
  const TrainingPoint defaults;
  t.strategy.options = {};
  t.reduce_dtype = defaults.reduce_dtype;
  t.recompute = defaults.recompute;
  t.gathers = defaults.gathers;
  t.sequence_parallel = defaults.sequence_parallel;
  t.dispatch = defaults.dispatch;
  t.schedule = defaults.schedule;
  t.stages = defaults.stages;
  t.rank_order = defaults.rank_order;
  point.collective.parts = CollectivePoint().parts;
  return point;
}

// A hash of what the ranks do in a step: the programs of all stages and the sizes of elements; for a
// collective, how many elements each rank sends to each.
uint64_t hash_of_step(const Point& point) {
  uint64_t hash = kHashStart;
  if (point.workload == "collective") {
    const CollectivePoint& c = point.collective;
    if (!specs::operation(c.operation).has_parts) return hash;
    if (specs::operation(c.operation).moves_tokens) return hash_bytes(c.parts, hash);
    const specs::Parts parts = specs::share_out(choice_from_text(c.parts), point.ranks,
                                                c.bytes / specs::dtype_bytes(c.dtype), point.folder);
    for (const std::vector<int64_t>& row : parts.rows())
      for (const int64_t elements : row) hash = hash_bytes(std::to_string(elements) + " ", hash);
    return hash;
  }
  const strategies::Stages stages(point);
  for (const strategies::Program& program : stages.programs) hash = strategies::program_hash(program, hash);
  for (const strategies::RankStep& step : stages.steps) {
    const specs::ElementBytes& bytes = step.input().bytes;
    for (const int64_t size : {bytes.compute, bytes.master, bytes.reduce})
      hash = hash_bytes(std::to_string(size) + " ", hash);
  }
  return hash;
}

}  // namespace

std::string IdleValue::text(const Point& point, const std::string& values) const {
  if (option.empty()) return fmt::format("{} {}", axis->key, values);
  return fmt::format("{} {} of {}", option, values, std::get<Choice>(value_of(*axis, point)).name);
}

std::vector<IdleValue> idle_values(const Point& point) {
  std::vector<IdleValue> idle;
  if (point.workload == "collective") return idle;  // expand() gives an idle axis one value
  for (const AxisRow& axis : kTrainingAxes)
    if (axis.is_stored() && !is_default(axis, point))
      if (const std::string why = why_idle(axis, point); !why.empty())
        idle.push_back({&axis, "", value_text(axis, point), why});
  for (const OptionRule& rule : kOptionRules) add_idle_options(rule, point, idle);
  return idle;
}

Point without(const std::vector<IdleValue>& values, Point point) {
  static const Point defaults;
  for (const IdleValue& idle : values) {
    if (idle.option.empty()) {
      visit_member(*idle.axis, point,
                   [&]<class T>(T& member) { member = std::get<T>(value_of(*idle.axis, defaults)); });
      continue;
    }
    Choice choice = std::get<Choice>(value_of(*idle.axis, point));
    for (const OptionSpec& spec : kind_of(idle.axis->key).options(choice.name))
      if (spec.key == idle.option) choice.options[spec.key] = spec.default_value;
    set_value(*idle.axis, choice, point);
  }
  return point;
}

void settle_idle_values(std::vector<Point>& points, const std::vector<size_t>& blocks,
                        std::vector<std::string>& notes) {
  std::vector<std::vector<IdleValue>> idle;
  for (const Point& point : points)
    idle.push_back(point.impossible.empty() ? idle_values(point) : std::vector<IdleValue>());

  // For each axis and option that is idle at some point of a block: all its values there, and those that act.
  std::map<Place, std::set<std::string>> listed, acting;
  const auto place_of = [&](const IdleValue& value, size_t i) {
    const AxisValue of_axis = value_of(*value.axis, points[i]);
    return Place(i < blocks.size() ? blocks[i] : 0, value.axis->key, value.option,
                 value.option.empty() ? "" : std::get<Choice>(of_axis).name);
  };
  for (size_t i = 0; i < points.size(); ++i)
    for (const IdleValue& value : idle[i]) listed[place_of(value, i)];
  for (auto& [place, values] : listed) {
    const auto& [block, key, option, name] = place;
    const AxisRow& axis = axis_named(key);
    for (size_t i = 0; i < points.size(); ++i) {
      if ((i < blocks.size() ? blocks[i] : 0) != block || points[i].workload == "collective") continue;
      std::string value = value_text(axis, points[i]);
      if (!option.empty()) {
        const Choice choice = std::get<Choice>(value_of(axis, points[i]));
        const OptionValue* const found = choice.options.find(option);
        if (choice.name != name || found == nullptr) continue;
        value = value_text(*found);
      }
      values.insert(value);
      const bool is_idle = std::any_of(idle[i].begin(), idle[i].end(), [&](const IdleValue& one) {
        return one.axis == &axis && one.option == option;
      });
      if (!is_idle) acting[place].insert(value);
    }
  }

  // Then every idle value is settled: the default replaces it if its block lists several values, and the
  // point becomes impossible if the value acts nowhere in its block.
  struct Joined {
    size_t point;  // one of the points that were merged
    IdleValue value;
    std::set<std::string> values = {};
  };
  std::map<std::string, Joined> joined;  // by its name in messages
  for (size_t i = 0; i < points.size(); ++i) {
    std::vector<IdleValue> replaced;
    for (const IdleValue& value : idle[i]) {
      const Place place = place_of(value, i);
      if (listed.at(place).size() > 1) {
        replaced.push_back(value);
        const auto known = joined.try_emplace(value.text(points[i], ""), Joined{i, value}).first;
        known->second.values.insert(value.value);
      } else if (!acting[place].contains(value.value)) {
        points[i].impossible = reason_text(value, points[i]);
      }
    }
    points[i] = without(replaced, points[i]);
  }
  for (const auto& [name, one] : joined) {
    const std::string& reason = one.value.reason;
    notes.push_back(
        fmt::format("{} changes nothing where {}; what would be the same step is one point",
                    one.value.text(points[one.point], fmt::format("{}", fmt::join(one.values, ", "))),
                    reason.substr(0, reason.find(';'))));
  }
}

std::vector<SamePoints> same_as_earlier(const std::vector<Point>& points) {
  std::map<std::string, std::vector<size_t>> alike;  // equal except for what the program shows
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].impossible.empty() && points[i].training.strategy.name != "auto")
      alike[point_id(without_program(points[i]))].push_back(i);
  std::vector<SamePoints> same;
  for (const auto& [id, members] : alike) {
    if (members.size() < 2) continue;
    std::map<uint64_t, size_t> steps;
    for (const size_t i : members) {
      const auto [first, is_new] = steps.emplace(hash_of_step(points[i]), i);
      if (!is_new) same.push_back({i, first->second});
    }
  }
  std::sort(same.begin(), same.end(),
            [](const SamePoints& a, const SamePoints& b) { return a.point < b.point; });
  return same;
}

void refuse_idle_values(const Point& point, const std::function<std::string(const AxisRow&)>& called) {
  for (const IdleValue& value : idle_values(point))
    throw UsageError(called(*value.axis) + ": " + reason_text(value, point));
}

}  // namespace shardmark
