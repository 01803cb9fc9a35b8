// A verdict on every node of a study that a suite with `accept` made: who is slower than the others, whose
// results or messages are wrong, what the preflight found.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/node_tests.h"
#include "schema/study.h"

namespace shardmark {

enum class NodeVerdict { in_service, not_tested, watch, out };
std::string_view to_text(NodeVerdict verdict);  // "in service", "not tested", "watch", "out"

// A quantity in which ranks doing the same at the same time are compared.
struct NodeQuantity {
  std::string_view key;   // of NodeTests::by_rank; "training": forward and backward of the training points
  std::string_view what;  // "for a matrix product": what a rank takes longer for
  std::string_view heading;
  bool is_rate;   // more is better
  double spread;  // by which healthy ranks differ: standard deviation of the logarithm
  double watch;   // excess that matters, from which on a node is watched: time / usual time - 1
  double out;     // and from which on it is taken out of service
};
const std::vector<NodeQuantity>& node_quantities();
// The same where ranks wait for cores: only what takes several times as long counts.
NodeQuantity crowded(NodeQuantity quantity);

// The chance that differences between healthy ranks name any of them, whatever their number.
inline constexpr double kFalseAlarms = 0.02;

// What each rank has to do with a quantity.
struct Judged {
  std::vector<double> excess;  // time / usual time - 1; NaN: not measured
  std::vector<bool> is_named;  // beyond what healthy ranks vary by and beyond `watch`
};
// Judges the values of all ranks, of which `num_values` are judged together with those of other quantities.
// The usual value is the expected one, or else the median of the ranks that are alike. These are found from
// the densest half on, and where two halves are about as dense, from the faster one, because faults only make
// ranks slower (forward search). Nobody is named among fewer than 3 ranks without an expected value.
//
// The spread of healthy ranks is estimated from those that are alike and, counted as three more, from
// NodeQuantity::spread, so that three ranks can be judged as well as ten thousand. With an expected value,
// launches differ, too. A rank is named beyond the quantile of Student's t at kFalseAlarms / num_values
// (Bonferroni). Sources: Hadi, J. R. Stat. Soc. B 54(3), 1992 (forward search); Gelman et al., Bayesian Data
// Analysis, 2.6 (scaled inverse chi-square).
Judged judge(const NodeQuantity& quantity, const std::vector<double>& values, size_t num_values,
             std::optional<double> expected = {});

struct NodeEvidence {
  NodeVerdict verdict;
  std::string words;  // "ranks 8-15 take 52 % longer for a matrix product"
};

struct JudgedNode {
  std::string name;
  std::vector<int64_t> ranks;
  NodeVerdict verdict = NodeVerdict::not_tested;
  std::vector<NodeEvidence> evidence = {};  // the worst first
  // By NodeQuantity::key: of its slowest rank, time / usual time - 1.
  std::map<std::string_view, double> excess = {};
  std::string evidence_text(std::string_view separator) const;
};

struct NodesJudged {
  std::vector<JudgedNode> nodes;     // those that are out first, then those to watch
  std::vector<std::string> remarks;  // of the whole cluster: what could not be judged, what all nodes share
  std::string basis;                 // what nodes are compared with
  int64_t count(NodeVerdict verdict) const;
};

// Nothing if no study was made by a suite with `accept`; of several the newest counts. Results of all its
// starts on the hosts of the latest one count, and times of the latest.
std::optional<NodesJudged> judge_nodes(const std::vector<StudyData>& studies);

}  // namespace shardmark
