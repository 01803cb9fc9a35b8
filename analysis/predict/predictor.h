// Predicts training steps from what one machine and transport was measured with: its collectives, and what
// its points computed.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "analysis/predict/collective_costs.h"
#include "analysis/predict/compute_costs.h"
#include "analysis/predict/growth.h"
#include "analysis/predict/stages.h"

namespace shardmark {

// Where predicted ranks lie, equally many on each node, the last one aside.
struct Cluster {
  int64_t ranks_per_node = 1;
  std::optional<specs::Link> network = {};    // across nodes; none: as measured
  std::optional<specs::Link> node_link = {};  // within a node
};

struct Prediction {
  Point point;
  std::string unknown = {};  // why nothing is predicted; empty when it is
  Estimate step_s = {};
  SimulatedStep parts = {};
  strategies::Cost cost = {};  // of the rank that needs most, by the strategy's program
  bool by_flops = false;       // blocks cut like this were not measured: in proportion to their FLOPs
  // Cost, and activations as measured; where they are laid out over several ranks, by formula. A NaN where
  // none were measured.
  double memory_bytes = Measures::kNone;
  // What the simulation went by, so that it can be shown: see simulate(). Without the programs.
  std::vector<strategies::SimulatedRank> stages = {};
  double progress = 0;
  OperationCounts across_nodes = {};  // operations of a step
  std::optional<Growth> growth = {};  // that the step counts in, beyond its simulation
};

// A measured point, predicted without its own measurement.
struct HeldOut {
  const MergedPoint* merged;
  SimulatedStep predicted;  // with the growth that the other points say
  OperationCounts across_nodes;
  double error() const { return predicted.step_s / merged->measures.step_s - 1; }
};

class Predictor {
 public:
  // points: all of one machine and transport are used, unreliable ones aside. They must outlive it.
  Predictor(const std::vector<MergedPoint>& points, const std::string& machine, const std::string& transport);

  // point: resolved, of the computing family of `like`.
  Prediction predict(const MergedPoint& like, const Point& point, const Cluster& cluster) const;
  // The same without an interval, which takes most of the time.
  Prediction estimate(const MergedPoint& like, const Point& point, const Cluster& cluster) const;

  // Every training point whose ranks communicate, if it could be predicted.
  const std::vector<HeldOut>& held_out() const { return held_out_; }
  const std::string& machine() const { return machine_; }
  const std::string& transport() const { return transport_; }
  size_t num_measured() const;  // training points that hold what predictions need
  const CollectiveCosts& collectives() const { return costs_; }
  // With the links that a cluster names instead of the measured ones.
  CollectiveCosts collectives_on(const Cluster& cluster) const;
  double progress() const { return progress_of(nullptr); }
  // Nothing where too few points, or all on one number of nodes, were held out.
  const std::optional<Growth>& growth() const { return growth_; }
  // Says which growth the predictions for that cluster count in, or why none.
  std::string growth_text(const Cluster& cluster) const;

 private:
  // How far simulated steps of a measured point are off.
  static constexpr size_t kNumProgress = 11;
  struct Replayed {
    std::string strategy;
    double stretch;  // its operations, played without the step / what the collectives of their sizes take
    std::array<double, kNumProgress> error;  // [progress]: |log(simulated / measured)|
  };
  // As measured (together.h); else of least mean error over all points but one.
  static double progress_at(size_t i) { return static_cast<double>(i) / (kNumProgress - 1); }
  double progress_of(const MergedPoint* without) const;
  std::optional<Replayed> replay(const MeasuredCompute& measured) const;
  void hold_out(const MergedPoint& merged, const Point& point);
  void fit_growth_with_nodes();
  bool uses_growth(const Cluster& cluster) const;
  // Median over all points of the strategy but one; over those of all strategies where there is none.
  double stretch_of(const std::string& strategy, const MergedPoint* without) const;
  Prediction predict(const MergedPoint& like, const Point& point, const Cluster& cluster,
                     const MergedPoint* without, bool with_interval) const;
  Estimate interval(const Prediction& prediction, const Stages& stages, const CollectiveCosts& costs,
                    int64_t ranks_per_node, double stretch) const;

  std::string machine_, transport_;
  CollectiveCosts costs_;
  std::map<std::string, ComputeCosts> families_;
  std::map<const MergedPoint*, Replayed> replayed_;
  std::map<std::string, std::vector<double>> stretches_;  // by strategy, sorted; of all under ""
  std::optional<double> measured_progress_;
  std::array<double, kNumProgress> errors_ = {};  // summed over replayed_
  std::vector<HeldOut> held_out_;
  std::optional<Growth> growth_;
};

// One for each machine and transport of the training points, in their order.
std::vector<Predictor> make_predictors(const std::vector<MergedPoint>& points);
// The one of the point's machine and transport; nullptr where there is none.
const Predictor* predictor_of(const MergedPoint& merged, const std::vector<Predictor>& predictors);

// The program in a series "program"; empty where that is damaged, or was written by another version of
// shardmark.
strategies::Program program_or_nothing(const Series& series);

}  // namespace shardmark
