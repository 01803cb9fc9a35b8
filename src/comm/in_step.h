// Sections that several ranks run together, in which a rank that fails alone must not leave the others
// waiting.
//
// Note [One rank that fails]: ranks that train together wait inside each other's collectives; on a GPU they
// wait behind kernels that only the end of a process stops. If one rank left such a section through an
// exception, the others would wait for ever, and the rank itself would unwind into destructors that wait for
// the device: memory is unmapped, communicators are destroyed. So the job ends where the exception is caught,
// with one line that says which rank failed and where. `launch` then continues in a new job and blames the
// configuration that ran. Steps in which a rank can fail alone (allocating memory, computing a block) run
// between such sections: the rank notes its failure, takes part in the remaining collectives, and all ranks
// agree on the failure afterwards (sweep/verdict.h).
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/error.h"

namespace shardmark {

// Marks exceptions that all ranks throw together, with the same message. No rank waits for another then.
struct OnAllRanks {};
struct RefusedByAllRanks : UsageError, OnAllRanks {
  using UsageError::UsageError;
};

// Call this in a catch block. Ends the job with kSystem and the line "failed: rank 1 on node2 in WHERE: ...",
// unless all ranks throw the same exception.
void end_job_for_exception(const std::string& where);

// Runs `body`. If it throws and there are several ranks, the job ends. where() returns the text for the
// message and is called only then.
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
