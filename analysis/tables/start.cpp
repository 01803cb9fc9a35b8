// The time from the launch of a point's ranks to the end of its first step, by part.
#include <cmath>

#include "analysis/frame/quantities.h"
#include "analysis/frame/training_columns.h"
#include "analysis/tables/tables.h"

namespace shardmark {

Table start_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  Table table = make_table(
      "phases.start", "Time to the first step, by part",
      join(labels.columns(), columns_of({{"launcher_time", "ranks", "", true},
                                         {"program_time", "ranks"},
                                         {"mpi_time", "ranks"},
                                         {"communicators_time", "point"},
                                         {"model_time", "point"},
                                         {"first_step_time", "point"},
                                         {"start_time"}})),
      training_points(points, [](const auto& merged) { return !std::isnan(merged.measures.first_step_s); }));
  table.explanations.emplace_back(
      "Launcher, program and MPI are those of the start that measured the point, so points of one start have "
      "the "
      "same. What a sweep does besides is not in these times: measuring the device's peak, opening the "
      "study, "
      "verification.");
  return table;
}

}  // namespace shardmark
