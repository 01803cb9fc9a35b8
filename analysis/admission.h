// What comes into the reference collection: studies that others can rely on, without what names people and
// hosts.
#pragma once

#include <string>
#include <vector>

#include "schema/study.h"

namespace shardmark {

// Repeats of each point, so that its spread is known.
inline constexpr int64_t kLeastRepeats = 3;

// Why the study cannot be a reference, a line each. Reads its file again for the seal. files: of the
// collection.
std::vector<std::string> reasons_against(const StudyData& study, const std::vector<std::string>& files);

// The points that gave a result, with all their numbers and samples, and of the environment only what is on a
// list: devices, counts, versions, what changes the speed of libraries, and some facts. Nodes are
// called node1, node2 ...; the command line, the suite's text, paths and what was said of points are left
// out. suite: the name of a suite that everybody has, or "".
StudyData anonymous(StudyData study, const std::string& suite);

// "nvidia-h200-8-gpu-collectives-2026-01-31.h5", of an anonymous study.
std::string reference_name(const StudyData& study);

// Publishes it (schema/published.h). SystemError: it cannot be written.
void write_reference(const StudyData& study, const std::string& path);

}  // namespace shardmark
