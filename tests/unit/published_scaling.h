// Scaling that others measured and published: the first row calibrates the computing, the others are
// predicted from the links of the hardware's data sheets and held against what was measured. Only tests
// need it: the figures that come out stand in analysis/predict/README.md.
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/stages.h"
#include "schema/record.h"
#include "specs/link.h"

namespace shardmark {

struct PublishedRow {
  Point point;
  std::string value;  // as published
  double step_s;      // that is
};

struct PublishedScaling {
  std::string name;     // "GPT 125M on A100 40GB"
  std::string source;   // where the rows stand
  std::string assumed;  // what the source does not say
  int64_t ranks_per_node;
  specs::Link node, across;        // of a rank: its link within the node, its share of those across
  std::vector<PublishedRow> rows;  // the first one calibrates
};

const std::vector<PublishedScaling>& published_scalings();
std::vector<PublishedScaling> published_llamas();

// A training point with its choices resolved.
Point published_point(const std::string& model, const std::string& strategy, const std::string& optimizer,
                      int64_t ranks, int64_t batch_size);

struct PredictedRow {
  double step_s;
  double communication_s;  // all operations of the step, one after the other
  double exposed_s;        // what of it computing does not hide
};

// What a GPU starts in a step across nodes.
struct Across {
  double operations, seconds;  // how many; what they take one after the other
};

// The step of a published point over published links.
class PublishedStep {
 public:
  PublishedStep(const PublishedScaling& published, const Point& point);

  // Where the whole model computes a micro-batch in so many seconds on one GPU: forward a third and backward
  // two thirds of it, divided among the blocks by their FLOPs.
  SimulatedStep with(double computing_s) const;
  double computing_s(double step_s) const;  // with which the step takes as long as that
  // The memory of a GPU at its peak, by the strategy's program and the model's table of activations.
  double memory_bytes() const;
  Across across() const;

 private:
  double samples_;
  int64_t ranks_per_node_;
  specs::ModelTable model_, of_rank_;
  Stages stages_;
  std::vector<std::vector<double>> operation_s_;  // [stage]
};

// One for each row; the first step equals what was measured, by its making.
std::vector<PredictedRow> predicted_rows(const PublishedScaling& published);

}  // namespace shardmark
