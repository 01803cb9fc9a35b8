// What several ranks do together, where one that fails alone must not leave the others waiting.
//
// Note [One rank that fails]: ranks that train together wait in each other's calls; on a GPU behind kernels
// that only the end of a process stops. A rank that left such a part alone, by whatever exception, would keep
// the others there, and would itself unwind into what waits for the device: memory is unmapped, communicators
// are destroyed. So the job ends where the exception is met, with one line that says which rank failed in
// what; `launch` goes on in a new job, and the point is the one to blame. What a rank may fail in alone
// (taking memory, computing a block) it does between such parts: it notes the failure, takes part in the
// calls that are left, and all agree on it (sweep/verdict.h).
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/error.h"

namespace shardmark {

// Marks exceptions that all ranks throw together, with the same words: nobody waits for anybody.
struct OnAllRanks {};
struct RefusedByAllRanks : UsageError, OnAllRanks {
  using UsageError::UsageError;
};

// In a catch block: ends the job with kSystem and the line "failed: rank 1 on node2 in WHERE: ...", unless
// all ranks throw the same.
void end_job_for_exception(const std::string& where);

// Runs body; an exception of it ends the job where several ranks do it. where(): text, asked for only then.
template <class Where, class Body>
decltype(auto) in_step(int64_t num_ranks, const Where& where, const Body& body) {
  try {
    return body();
  } catch (const std::exception&) {
    if (num_ranks > 1) end_job_for_exception(where());
    throw;
  }
}

}  // namespace shardmark
