// A baseline: the step times of launches on one or several machines, in a JSON file that is small enough to
// commit beside the code. Note [Baseline]
//   {"shardmark_baseline": 1,
//    "machines": {"<devices, threads per rank>": {
//      "started": {"<launch>": "<UTC>"}, "environment": {"<what>": ["<value>"]},
//      "points": {"<content_id>": {"name": "...", "step_s": [0.102, 0.099, 0.101],
//                                  "reference": {"value": 0.1, "lower": 0.09, "upper": 0.11}}}}}}
// A reference is written by hand, in seconds; null leaves an end open. It decides in place of the test, so
// that one launch is enough, and it stays when the baseline is written anew.
#pragma once

#include <string>

#include "analysis/compare/launches.h"

namespace shardmark {

// The text of a baseline with these launches; other machines and all references are those of `existing`, the
// text of a baseline or "". Throws as read_baseline.
std::string to_baseline(const Launches& launches, const std::string& existing, const std::string& path);

// The launches of a machine. UsageError, beginning with `path`: no baseline, a newer one, no such machine.
Launches read_baseline(const std::string& text, const std::string& machine, const std::string& path);

}  // namespace shardmark
