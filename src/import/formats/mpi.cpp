// Makes a record from a row of an MPI benchmark.
#include "import/formats/mpi.h"

#include "import/collective_record.h"

namespace shardmark::imports {

Record mpi_record(const MpiBenchmark& benchmark, int64_t bytes, int64_t ranks, double time_us,
                  int64_t num_steps, std::string_view element) {
  Record record = collective_record(specs::collective(benchmark.collective), ranks,
                                    benchmark.per_rank ? bytes * ranks : bytes, time_us * 1e-6);
  record.point.collective.dtype = element_type(element);
  record.measures.num_steps = num_steps;
  return record;
}

}  // namespace shardmark::imports
