// Creates the kernels of a program's reduction.
#include "executor/reductions/reduction.h"

namespace shardmark {

std::unique_ptr<ReductionKernels> make_kernels(const strategies::Program& program, const Model& model,
                                               const ProgramMemory& memory, const Communicator& comm,
                                               int64_t seed) {
  const auto& entries = Registry<KernelsEntry>::instance();
  if (!entries.contains(program.reduction.name)) return nullptr;
  KernelContext context{program.copies.index_of(comm.rank()),
                        program.copies.ranks,
                        model.table(),
                        program.layout,
                        {},
                        program.reduction.options,
                        seed};
  for (const strategies::BucketMemory& bucket : program.buckets) {
    context.buckets.push_back({bucket.bucket, memory.at(bucket.gradients), {}});
    for (const auto& slice : bucket.scratch)
      context.buckets.back().scratch[program.buffers[static_cast<size_t>(slice.buffer)].name] =
          memory.at(slice);
  }
  return entries.get(program.reduction.name, "reduction").make(std::move(context));
}

}  // namespace shardmark
