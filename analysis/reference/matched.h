// The reference collection: studies that others measured, one file each. What a report puts beside its own
// points: the same point (all that defines it) on the same device, nodes and ranks on each, on whatever host.
#pragma once

#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

// "NVIDIA H200": without the threads per rank.
std::string device_of(const MergedPoint& merged);

// What the collection has for some studies.
struct References {
  // Studies of the same devices over the same transport (on CPU ranks also with as many threads, because
  // threads are what computes there). They hold only records of points that the given studies have, too, and
  // no raw samples. A record that a study holds itself is no reference for it.
  std::vector<StudyData> studies;
  bool is_device_known = false;  // whether the collection has such a device, these studies themselves aside
  bool holds_them = false;       // whether it holds records of these studies
};

// The study files of a folder, by name. None where there is no such folder.
std::vector<std::string> study_files(const std::string& folder);

// Files of other devices are not opened as studies. One that cannot be read is warned of and left out.
References references_for(const std::vector<StudyData>& studies, const std::vector<std::string>& files);

// A point of a report beside that of the collection which was measured most often.
struct ReferencePoint {
  const MergedPoint* here;
  const MergedPoint* there;
  const StudyData* study;  // the first that measured it
  // Step of the reference / this step. From the outer ends of both steps' 95 % intervals.
  Estimate speed;
};

// The points of the references, and those that a report has beside them, in its order. They point into the
// studies and the points, which must outlive them.
struct ReferenceMatches {
  ReferenceMatches(const std::vector<MergedPoint>& points, const References& references);
  std::vector<MergedPoint> merged;
  std::vector<ReferencePoint> points;
};

}  // namespace shardmark
