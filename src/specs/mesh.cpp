// The mesh of a training point's layout.
#include "specs/mesh.h"

#include "schema/point.h"

namespace shardmark::specs {

Mesh mesh_of(const Point& point) {
  const TrainingPoint& t = point.training;
  return {.data = point.data_ranks(),
          .pipeline = t.pipeline,
          .pipeline_inside = t.rank_order == "pp-dp",
          .tensor = t.tensor,
          .context = t.context,
          .expert = t.expert};
}

}  // namespace shardmark::specs
