// The order by prediction, with the choice of the rule of thumb among the first.
#include "analysis/predict/shortlist.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace shardmark {
namespace {

int order_of(const Choice& strategy) {
  if (strategy.name == "ddp") return 2;
  const OptionValue* const shard = strategy.options.find("shard");
  return shard != nullptr && *shard == OptionValue("optimizer") ? 0 : 1;
}

auto by_rule(const Point& point) {
  const TrainingPoint& t = point.training;
  return std::tuple(t.pipeline, t.tensor, t.expert, order_of(t.strategy), -t.batch_size);
}

}  // namespace

size_t shortlist_size(int64_t nodes, bool has_growth) {
  if (nodes <= kFewNodes) return kOnFewNodes;
  return has_growth ? kOnManyNodes : kWithoutGrowth;
}

bool is_before_by_rule(const Point& a, const Point& b) { return by_rule(a) < by_rule(b); }

std::vector<size_t> shortlist(const std::vector<LayoutCandidate>& all, size_t size) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all[a].step_s < all[b].step_s; });
  if (order.size() <= size) return order;
  const auto of_rule = std::min_element(order.begin(), order.end(), [&](size_t a, size_t b) {
    return is_before_by_rule(*all[a].point, *all[b].point);
  });
  // Behind the others where it would not be among them.
  if (const auto last = order.begin() + static_cast<std::ptrdiff_t>(size) - 1; of_rule > last)
    std::rotate(last, of_rule, of_rule + 1);
  order.resize(size);
  return order;
}

std::string how_it_was_checked() {
  return "Checked on published layouts of Llama models on 2 to 64 nodes of 8 H100 "
         "(analysis/predict/README.md): "
         "a shortlist of 3 had a layout within 5 % of the best in 9 of 9 sets on 2 to 8 nodes, one of 7 in 4 "
         "of "
         "4 on more; the first by prediction alone was within 5 % in 6 and 0 of them, the rule's choice in 8 "
         "and 0.";
}

}  // namespace shardmark
