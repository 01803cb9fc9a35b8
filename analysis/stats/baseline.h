// A baseline: the step times of launches on one or several machines, in a JSON file that is small enough to
// commit beside the code. Note [Baseline]
//   {"shardmark_baseline": 1,
//    "machines": {"<devices, threads per rank>": {
//      "started": {"<launch>": "<UTC>"}, "environment": {"<what>": ["<value>"]},
//      "points": {"<content_id>": {"name": "...", "step_s": [0.102, 0.099, 0.101],
//                                  "reference": {"value": 0.1, "lower": 0.09, "upper": 0.11}}}}}}
// A reference is written by hand, in seconds; null leaves an end open. It decides in place of the test, so
// that one launch is enough. What is written replaces the times of the same points; those of other points and
// machines stay, and all references.
#pragma once

#include <string>

#include "analysis/frame/launches.h"

namespace shardmark {

struct Baseline {
  std::string text;
  size_t num_written = 0;  // points with times of these launches
  size_t num_kept = 0;     // further points of their machine that keep their times
};

// A baseline with these launches; all else is as in `existing`, the text of a baseline or "". Throws as
// read_baseline.
Baseline to_baseline(const Launches& launches, const std::string& existing, const std::string& path);

// The launches of a machine. UsageError, beginning with `path`: no baseline, a newer one, no such machine, a
// key or value that a slip of the hand made, with its place.
Launches read_baseline(const std::string& text, const std::string& machine, const std::string& path);

}  // namespace shardmark
