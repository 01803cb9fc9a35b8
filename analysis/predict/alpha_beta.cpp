// The cost model is linear in alpha and beta once it is known, for each time, whether ring or tree and which
// kind of link it is that counts; both are taken from the last fit until they no longer change.
#include "analysis/predict/alpha_beta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr size_t kLeastTimes = 4;
constexpr int kMostPasses = 20;  // of choosing and fitting; 3 to 5 are usual

// A time as alpha and beta make it: node . {alpha, beta} of a node's links, which are known where those
// across are in question, + terms . {alpha, beta} in question.
struct Way {
  least_squares::Coefficients node = {}, terms = {};
  bool operator==(const Way&) const = default;
};
using Ways = std::vector<Way>;

least_squares::Coefficients as_coefficients(const specs::LinkCost& link) {
  return {link.alpha_s, link.beta_s_per_byte, 0};
}

double seconds(const least_squares::Coefficients& terms, const specs::LinkCost& link) {
  return least_squares::dot(terms, as_coefficients(link));
}

// Which algorithm and which kind of link decide a time, if the links in question cost what `link` says:
// ring or tree, whichever is faster, and across nodes the slower kind of link. Only the slower kind's beta
// counts, so beta of the links across has a term of 0 if the links of the node are the slower ones.
Way way_of(const TimedCollective& time, const specs::LinkCost& node, const specs::LinkCost& link) {
  const specs::Network network =
      time.across_nodes() ? specs::Network{node, link} : specs::Network{link, specs::LinkCost{}};
  const auto all = specs::collective_terms(time.operation, time.span);
  const auto& best = *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return specs::collective_s(a, time.bytes, network) < specs::collective_s(b, time.bytes, network);
  });
  const double inside = best.node_factor * time.bytes, across = best.across_factor * time.bytes;
  if (!time.across_nodes()) return {{}, {best.node_steps, inside, 0}};
  if (inside * node.beta_s_per_byte > across * link.beta_s_per_byte)
    return {{best.node_steps, inside, 0}, {best.across_steps, 0, 0}};
  return {{best.node_steps, 0, 0}, {best.across_steps, across, 0}};
}

Ways ways_of(const std::vector<TimedCollective>& times, const specs::LinkCost& node,
             const specs::LinkCost& link) {
  Ways ways;
  ways.reserve(times.size());
  for (const TimedCollective& time : times) ways.push_back(way_of(time, node, link));
  return ways;
}

// The most that alpha and beta can be: all of the shortest time.
specs::LinkCost first_guess(const std::vector<TimedCollective>& times, const specs::LinkCost& node) {
  specs::LinkCost most{INFINITY, INFINITY};
  for (const TimedCollective& time : times) {
    const Way way = way_of(time, {}, {1, 1});
    most.alpha_s = std::min(most.alpha_s, time.time_s.value / way.terms[0]);
    most.beta_s_per_byte = std::min(most.beta_s_per_byte, time.time_s.value / way.terms[1]);
  }
  most.beta_s_per_byte = std::max(most.beta_s_per_byte, node.beta_s_per_byte);
  return most;
}

// Residuals relative to what the last fit made of a time, where there is one and that is above 0.
least_squares::Fit fit_once(const std::vector<TimedCollective>& times, const Ways& ways,
                            const specs::LinkCost& node, const specs::LinkCost* last) {
  std::vector<least_squares::Row> rows;
  rows.reserve(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    const Estimate& measured = times[i].time_s;
    const auto& terms = ways[i].terms;
    const double node_s = seconds(ways[i].node, node);
    const double fitted_s = last == nullptr ? 0 : node_s + seconds(terms, *last);
    const double scale = (fitted_s > 0 ? fitted_s : measured.value) * least_squares::relative_error(measured);
    rows.push_back({{terms[0] / scale, terms[1] / scale, 0}, (measured.value - node_s) / scale});
  }
  return least_squares::fit(rows, least_squares::first(2));
}

specs::LinkCost bounded(const least_squares::Fit& fit) {
  const auto best = least_squares::nearest_bounded(fit, fit.best, 0);
  return {best[0], best[1]};
}

bool shows_beta(const Ways& ways) {
  return std::any_of(ways.begin(), ways.end(), [](const Way& way) { return way.terms[1] > 0; });
}

// The costs of a node's links have errors too. Along each independent direction of those the fit is done
// again; what the coefficients move by adds to their own errors.
void add_errors_of_node(least_squares::Fit& curve, const std::vector<TimedCollective>& times,
                        const Ways& ways, const AlphaBeta& node, const specs::LinkCost& last) {
  const auto best = curve.best;
  for (size_t direction = 0; direction < 2; ++direction) {
    specs::LinkCost moved = node.cost();
    moved.alpha_s += node.curve.spread[0][direction];
    moved.beta_s_per_byte += node.curve.spread[1][direction];
    auto step = fit_once(times, ways, moved, &last).best;
    for (size_t i = 0; i < step.size(); ++i) step[i] -= best[i];
    least_squares::add_error(curve, step);
  }
}

// The value that a cost may have, in the interval that the data give it, cut at 0.
Estimate cut(const Estimate& e, double value) {
  return {value, std::clamp(e.low, 0.0, value), std::max(e.high, value)};
}

// Two sizes must have been measured on the same ranks, or latency and bandwidth cannot be told apart.
std::string too_few(const std::vector<TimedCollective>& times) {
  if (times.size() < kLeastTimes)
    return fmt::format("{} time{}; a fit needs {}", times.size(), times.size() == 1 ? "" : "s", kLeastTimes);
  std::map<std::pair<int64_t, int64_t>, std::set<double>> sizes;
  for (const TimedCollective& time : times)
    if (auto& here = sizes[{time.span.ranks, time.span.nodes}]; here.insert(time.bytes).second)
      if (here.size() > 1) return "";
  return "one size only: " + format_bytes(times.front().bytes);
}

}  // namespace

AlphaBeta fit_alpha_beta(const std::vector<TimedCollective>& times, const AlphaBeta* known_node) {
  AlphaBeta fit;
  fit.operation = times.front().operation;
  fit.across_nodes = times.front().across_nodes();
  fit.num_times = static_cast<int64_t>(times.size());
  fit.refused = too_few(times);
  if (!fit.refused.empty()) return fit;
  const specs::LinkCost node = known_node == nullptr ? specs::LinkCost{} : known_node->cost();
  specs::LinkCost link = first_guess(times, node);
  // Choosing and fitting take turns until no time changes its way. Residuals of the first fit are relative
  // to the measured times, which gives too much weight to a time that is short by chance. Those of the
  // others are relative to the fit before, so a few more fits are done even if no way changes.
  Ways ways = ways_of(times, node, link);
  fit.curve = fit_once(times, ways, node, nullptr);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    link = bounded(fit.curve);
    Ways next = ways_of(times, node, link);
    const bool stays = next == ways;
    if (shows_beta(next)) ways = std::move(next);  // else: across nodes is nowhere the slower link
    fit.curve = fit_once(times, ways, node, &link);
    if (stays && pass > 1) break;
  }
  if (known_node != nullptr) add_errors_of_node(fit.curve, times, ways, *known_node, link);
  link = bounded(fit.curve);
  fit.alpha_s = cut(least_squares::estimate(fit.curve, 0), link.alpha_s);
  fit.beta_s_per_byte = cut(least_squares::estimate(fit.curve, 1), link.beta_s_per_byte);
  std::vector<double> off;
  for (size_t i = 0; i < times.size(); ++i)
    off.push_back(
        std::abs(times[i].time_s.value / (seconds(ways[i].node, node) + seconds(ways[i].terms, link)) - 1));
  fit.deviation = median(std::move(off));
  return fit;
}

}  // namespace shardmark
