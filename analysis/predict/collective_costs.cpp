// Which fit and which measured curve an operation's time comes from.
#include "analysis/predict/collective_costs.h"

#include <algorithm>
#include <cmath>

#include "specs/collectives.h"

namespace shardmark {
namespace {

using specs::Collective;

// The first thing that `of` finds for the operation itself, or else for the one most like it.
template <class Of>
auto most_similar(Collective operation, Of of) {
  auto* found = of(operation);
  for (const Collective one : specs::collective(operation).similar)
    if (found == nullptr) found = of(one);
  return found;
}

// How far two spans are apart, in logarithms: 8 ranks are as far from 16 as 64 are from 128.
double distance(specs::Span a, specs::Span b) {
  const auto apart = [](int64_t x, int64_t y) {
    return std::abs(std::log(static_cast<double>(x) / static_cast<double>(y)));
  };
  return apart(a.ranks, b.ranks) + apart(a.nodes, b.nodes);
}

// Linear between the two points next to x; beyond the ends, the value at the end.
double interpolated(const std::map<double, double>& curve, double x) {
  const auto right = curve.lower_bound(x);
  if (right == curve.end()) return curve.rbegin()->second;
  if (right == curve.begin() || right->first == x) return right->second;
  const auto left = std::prev(right);
  const double share = (x - left->first) / (right->first - left->first);
  return left->second + share * (right->second - left->second);
}

bool is_usable(const TimedCollective& time) {
  return time.span.ranks > 1 && time.bytes > 0 && std::isfinite(time.time_s.value) && time.time_s.value > 0;
}

}  // namespace

CollectiveCosts::CollectiveCosts(const std::vector<TimedCollective>& times) {
  // Links within a node are fitted before those across nodes, because the fits across take the part of a
  // node off their times. A curve then holds, for each measured size, what the cost model is off by: as
  // logarithms, so that factors are interpolated.
  std::vector<TimedCollective> usable;
  std::copy_if(times.begin(), times.end(), std::back_inserter(usable), is_usable);
  add_fits(usable, false);
  add_fits(usable, true);
  for (const TimedCollective& time : usable) {
    const auto modelled = model_s(time.operation, time.bytes, time.span);
    if (!modelled || !(*modelled > 0)) continue;
    auto found = std::find_if(curves_.begin(), curves_.end(), [&](const Curve& curve) {
      return curve.operation == time.operation && curve.span == time.span;
    });
    if (found == curves_.end()) found = curves_.insert(curves_.end(), {time.operation, time.span, {}});
    found->deviations[std::log(time.bytes)] = std::log(time.time_s.value / *modelled);
  }
}

void CollectiveCosts::add_fits(const std::vector<TimedCollective>& times, bool across_nodes) {
  for (const specs::CollectiveRow& row : specs::collectives()) {
    std::vector<TimedCollective> here;
    std::copy_if(times.begin(), times.end(), std::back_inserter(here), [&](const TimedCollective& time) {
      return time.operation == row.what && time.across_nodes() == across_nodes;
    });
    if (here.empty()) continue;
    // Where nothing was measured within a node, its part is counted to the links across.
    fits_.push_back(fit_alpha_beta(here, across_nodes ? fit_for(row.what, false) : nullptr));
  }
}

// An operation without a fit of its own takes that of the most similar one that has a fit.
const AlphaBeta* CollectiveCosts::fit_for(Collective operation, bool across_nodes) const {
  return most_similar(operation, [&](Collective one) -> const AlphaBeta* {
    for (const AlphaBeta& fit : fits_)
      if (fit.operation == one && fit.across_nodes == across_nodes && fit.refused.empty()) return &fit;
    return nullptr;
  });
}

// The curve of the nearest span on the same kind of links; of the operation itself, or of the most similar
// one that has such a curve. Curves within a node say nothing about times across nodes, nor the other way
// round.
const CollectiveCosts::Curve* CollectiveCosts::curve_for(Collective operation, specs::Span span) const {
  return most_similar(operation, [&](Collective one) {
    const Curve* nearest = nullptr;
    for (const Curve& curve : curves_) {
      if (curve.operation != one || (curve.span.nodes > 1) != (span.nodes > 1)) continue;
      if (nearest == nullptr || distance(curve.span, span) < distance(nearest->span, span)) nearest = &curve;
    }
    return nearest;
  });
}

// Nothing if the links in question have neither a fit nor a rate that the user gave. Across nodes, a fit
// holds the part within the node as well (see add_fits), but a given link does not: with several ranks on a
// node, the node's links must then be known, too.
std::optional<double> CollectiveCosts::model_s(Collective operation, double bytes, specs::Span span) const {
  const AlphaBeta* node = fit_for(operation, false);
  const AlphaBeta* across = fit_for(operation, true);
  if (span.nodes < 2 && node == nullptr) return std::nullopt;
  if (span.nodes > 1) {
    if (across == nullptr) return std::nullopt;
    const bool is_a_link = across->num_times == 0;
    if (node == nullptr && is_a_link && span.ranks_per_node() > 1) return std::nullopt;
  }
  return specs::collective_s(operation, bytes, span,
                             {node == nullptr ? specs::LinkCost{} : node->cost(),
                              across == nullptr ? specs::LinkCost{} : across->cost()});
}

double CollectiveCosts::time_s(Collective operation, double bytes, specs::Span span) const {
  if (span.ranks < 2) return 0;
  const auto modelled = model_s(operation, bytes, span);
  if (!modelled) return Measures::kNone;
  const Curve* curve = curve_for(operation, span);
  return curve == nullptr ? *modelled
                          : *modelled * std::exp(interpolated(curve->deviations, std::log(bytes)));
}

std::optional<CollectiveBasis> CollectiveCosts::basis(Collective operation, double bytes,
                                                      specs::Span span) const {
  const Curve* curve = curve_for(operation, span);
  if (curve == nullptr) return std::nullopt;
  const double x = std::log(bytes);
  return CollectiveBasis{curve->operation, curve->span,
                         x >= curve->deviations.begin()->first && x <= curve->deviations.rbegin()->first};
}

CollectiveCosts CollectiveCosts::replaced(const specs::Link& link, bool across_nodes) const {
  CollectiveCosts other = *this;
  std::erase_if(other.curves_, [&](const Curve& curve) { return (curve.span.nodes > 1) == across_nodes; });
  std::erase_if(other.fits_, [&](const AlphaBeta& fit) { return fit.across_nodes == across_nodes; });
  // A given link has the same alpha and beta for every operation, without an error (num_times stays 0, so
  // that drawn() does not vary it). The curves of the former links are of no use for it.
  const auto [alpha, beta] = link.cost();
  for (const specs::CollectiveRow& row : specs::collectives()) {
    AlphaBeta& fit = other.fits_.emplace_back();
    fit.operation = row.what;
    fit.across_nodes = across_nodes;
    fit.alpha_s = {alpha, alpha, alpha};
    fit.beta_s_per_byte = {beta, beta, beta};
  }
  return other;
}

CollectiveCosts CollectiveCosts::drawn(std::mt19937_64& random) const {
  CollectiveCosts other = *this;
  for (AlphaBeta& fit : other.fits_) {
    if (!fit.refused.empty() || fit.num_times == 0) continue;
    // A draw may take alpha or beta below 0; then it is the nearest allowed pair that counts.
    const auto step = least_squares::step(fit.curve, least_squares::Draws(fit.curve.degrees).next(random));
    auto drawn = fit.curve.best;
    for (size_t i = 0; i < drawn.size(); ++i) drawn[i] += step[i];
    drawn = least_squares::nearest_bounded(fit.curve, drawn, 0);
    fit.alpha_s.value = drawn[0];
    fit.beta_s_per_byte.value = drawn[1];
  }
  return other;
}

}  // namespace shardmark
