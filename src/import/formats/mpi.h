// What the MPI benchmarks (OSU, Intel) share: a name of theirs, our collective, and what they mean by a size.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "import/source.h"
#include "specs/collectives.h"

namespace shardmark::imports {

struct MpiBenchmark {
  std::string_view name;
  specs::Collective collective;
  bool per_rank = false;  // a size is the part of each rank, of which the larger side has one for each
};

template <size_t kCount>
const MpiBenchmark* find_benchmark(const std::array<MpiBenchmark, kCount>& all, std::string_view name) {
  for (const MpiBenchmark& one : all)
    if (one.name == name) return &one;
  return nullptr;
}

// time_us: of `bytes` as the benchmark counts them, on so many ranks.
Record mpi_record(const MpiBenchmark& benchmark, int64_t bytes, int64_t ranks, double time_us,
                  int64_t num_steps, std::string_view element);

}  // namespace shardmark::imports
