// Makes a workload by its name.
#include "sweep/workloads/workload.h"

#include "base/error.h"

namespace shardmark {

std::unique_ptr<Workload> make_workload(const WorkloadContext& context) {
  const std::string& name = context.point.workload;
  if (name == "training") return make_training(context);
  if (name == "collective")
    return context.point.collective.beside == "alone" ? make_collective(context) : make_together(context);
  throw UsageError("unknown workload '" + name + "'; known: training, collective");
}

}  // namespace shardmark
