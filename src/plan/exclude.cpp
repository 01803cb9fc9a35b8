// Each key of a rule becomes one test on a point; a rule is their conjunction.
#include "plan/exclude.h"

#include <algorithm>
#include <map>

#include "laws/collectives.h"
#include "laws/vocabulary.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

using ReadRule = Rule (*)(const YamlNode&);

template <class Get, class Read>
Rule one_of(const YamlNode& node, Read read, Get get) {
  return [values = read_axis(node, read), get](const Point& point) {
    return std::find(values.begin(), values.end(), get(point)) != values.end();
  };
}

bool matches(const Choice& choice, const Choice& part) {
  if (choice.name != part.name) return false;
  return std::all_of(part.options.begin(), part.options.end(),
                     [&](const auto& option) { return choice.options.at(option.first) == option.second; });
}

template <Choice TrainingPoint::*member>
Rule choice_rule(const YamlNode& node, const ChoiceKind& kind) {
  return [parts = read_partial_choices(node, kind)](const Point& point) {
    return point.workload == "training" && std::any_of(parts.begin(), parts.end(), [&](const Choice& part) {
             return matches(point.training.*member, part);
           });
  };
}

Rule only(const std::string& workload, const Rule& rule) {
  return [workload, rule](const Point& point) { return point.workload == workload && rule(point); };
}

template <class Kind, class Get>
Rule value_rule(const YamlNode& node, const Kind& kind, Get get) {
  return one_of(
      node, [&](const YamlNode& item) { return item.value(kind); }, get);
}

Rule ranks_rule(const YamlNode& node) {
  const Rule rule = value_rule(node, values::kRanks, [](const Point& p) { return p.ranks; });
  const std::string place = node.place();
  return [rule, place](const Point& point) {
    if (point.ranks == kWorldSize)
      throw UsageError(place +
                       "exclude names ranks, but the suite lists none; give the suite a list of ranks");
    return rule(point);
  };
}

// A batch is per rank in weak scaling and of all ranks in strong scaling.
Rule batch_rule(const YamlNode& node, const std::string& scaling, int64_t (*read)(const YamlNode&)) {
  const Rule batch = one_of(node, read, [](const Point& p) { return p.training.batch_size; });
  return only("training",
              [scaling, batch](const Point& p) { return p.training.scaling == scaling && batch(p); });
}
int64_t read_global_batch(const YamlNode& node) { return node.value(values::kBatch); }

Rule bytes_rule(const YamlNode& node) {
  return only("collective",
              value_rule(node, values::kMessage, [](const Point& p) { return p.collective.bytes; }));
}

Rule transport_rule(const YamlNode& node) {
  return [parts = read_partial_choices(node, transport_kind())](const Point& point) {
    return !point.transport.empty() && std::any_of(parts.begin(), parts.end(), [&](const Choice& part) {
      return matches(choice_from_text(point.transport), part);
    });
  };
}

const std::map<std::string, ReadRule>& rule_readers() {
  using Node = const YamlNode&;
  static const std::map<std::string, ReadRule> readers = {
      {"model", [](Node n) { return choice_rule<&TrainingPoint::model>(n, model_kind()); }},
      {"data", [](Node n) { return choice_rule<&TrainingPoint::data>(n, data_kind()); }},
      {"strategy", [](Node n) { return choice_rule<&TrainingPoint::strategy>(n, strategy_kind()); }},
      {"optimizer", [](Node n) { return choice_rule<&TrainingPoint::optimizer>(n, optimizer_kind()); }},
      {"precision",
       [](Node n) {
         return only("training", value_rule(n, Word{names_of(laws::precision_laws())},
                                            [](const Point& p) { return p.training.precision; }));
       }},
      {"reduce_dtype",
       [](Node n) {
         return only("training", value_rule(n, Word{laws::reduce_dtype_names()},
                                            [](const Point& p) { return p.training.reduce_dtype; }));
       }},
      {"clip_norm",
       [](Node n) {
         return only("training",
                     one_of(n, read_clip_norm, [](const Point& p) { return p.training.clip_norm; }));
       }},
      {"checkpointing",
       [](Node n) {
         return only("training",
                     one_of(n, read_checkpointing, [](const Point& p) { return p.training.checkpointing; }));
       }},
      {"batch_size", [](Node n) { return batch_rule(n, "weak", read_batch); }},
      {"global_batch", [](Node n) { return batch_rule(n, "strong", read_global_batch); }},
      {"accumulation",
       [](Node n) {
         return only("training", value_rule(n, values::kAccumulation,
                                            [](const Point& p) { return p.training.accumulation; }));
       }},
      {"operation",
       [](Node n) {
         return only("collective", value_rule(n, Word{laws::collective_names()},
                                              [](const Point& p) { return p.collective.operation; }));
       }},
      {"dtype",
       [](Node n) {
         return only("collective", value_rule(n, Word{laws::dtype_names()},
                                              [](const Point& p) { return p.collective.dtype; }));
       }},
      {"reduction",
       [](Node n) {
         return only("collective", value_rule(n, Word{laws::reduction_names()},
                                              [](const Point& p) { return p.collective.reduction; }));
       }},
      {"bytes", bytes_rule},
      {"in_place",
       [](Node n) {
         return only("collective", one_of(
                                       n, [](const YamlNode& item) { return item.boolean(); },
                                       [](const Point& p) { return p.collective.in_place; }));
       }},
      {"ranks", ranks_rule},
      {"transport", transport_rule},
  };
  return readers;
}

}  // namespace

Rule read_rule(const YamlNode& node) {
  std::vector<std::string> keys;
  for (const auto& [key, reader] : rule_readers()) keys.push_back(key);
  const YamlMap map(node, "a rule of exclude", keys);  // checks the keys
  std::vector<Rule> tests;
  for (const auto& entry : node.entries()) tests.push_back(rule_readers().at(entry.key())(entry));
  if (tests.empty()) node.fail("an empty rule would leave out every point; " + accepted_words("", keys));
  return [tests](const Point& point) {
    return std::all_of(tests.begin(), tests.end(), [&](const Rule& test) { return test(point); });
  };
}

}  // namespace shardmark
