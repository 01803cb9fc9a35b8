// What the readers of MPI benchmarks (OSU, Intel) share: the benchmark's name, our collective, and what the
// benchmark means by a size.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "import/collective_record.h"
#include "import/source.h"
#include "specs/collectives.h"

namespace shardmark::imports {

struct MpiBenchmark {
  std::string_view name;
  specs::Collective collective;
  // If true, a size is that of one rank's part, and the larger side has such a part for each rank.
  bool per_rank = false;
};

template <size_t kCount>
const MpiBenchmark* find_benchmark(const std::array<MpiBenchmark, kCount>& all, std::string_view name) {
  for (const MpiBenchmark& one : all)
    if (one.name == name) return &one;
  return nullptr;
}

// time_us is the time for `bytes`, counted as the benchmark does, on this number of ranks.
inline Record mpi_record(const MpiBenchmark& benchmark, int64_t bytes, int64_t ranks, double time_us,
                         int64_t num_steps, std::string_view element) {
  Record record = collective_record(specs::collective(benchmark.collective), ranks,
                                    benchmark.per_rank ? bytes * ranks : bytes, time_us * 1e-6);
  record.point.collective.dtype = element_type(element);
  record.measures.num_steps = num_steps;
  return record;
}

}  // namespace shardmark::imports
