// Whether Open MPI gives the core away in calls that find nothing to do.
#pragma once

namespace shardmark {

// Note [Yields inside MPI]
// With mpi_yield_when_idle, which launch sets where there are more ranks than cores, Open MPI yields the core
// in every call that finds nothing to do: not only in those that block, but also when a wait of ours polls.
// Where something else wants the core, a poll then takes a whole slice of the scheduler, 3 ms since
// Linux 6.6, and a step of many messages takes many of them. Our own waits yield and sleep as is best
// (base/backoff.h). So MPI yields only while one of these objects lives, around the calls that block inside
// of MPI. Where the user or launch did not set it, MPI never yields, and other MPI libraries than Open MPI do
// as they are told.
class YieldsInMpi {
 public:
  YieldsInMpi();
  ~YieldsInMpi();
  YieldsInMpi(const YieldsInMpi&) = delete;
  YieldsInMpi& operator=(const YieldsInMpi&) = delete;
};

// From now on MPI yields only in the presence of such an object. To be called after MPI_Init, any number of
// times.
void yield_only_where_mpi_blocks();

}  // namespace shardmark
