// Uses a function of Open MPI's own, where the loaded library has it.
#include "comm/mpi/yielding.h"

#include <dlfcn.h>

#include <atomic>

#include "base/backoff.h"

namespace shardmark {
namespace {

using SetYield = bool(bool);  // returns what was set before

// What is found of the library that is loaded; nullptr where it is another one.
struct Switch {
  SetYield* set = reinterpret_cast<SetYield*>(dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
  const bool* value = static_cast<const bool*>(dlsym(RTLD_DEFAULT, "opal_progress_yield_when_idle"));
  // Whether the user or launch wants yields.
  bool is_wanted = set != nullptr && value != nullptr && *value;
};

const Switch& found() {
  static const Switch of_library;
  return of_library;
}

std::atomic<int> num_blocking{0};  // objects of all threads

}  // namespace

void yield_only_where_mpi_blocks() {
  if (!found().is_wanted || num_blocking != 0) return;
  found().set(false);
  Backoff::there_are_more_ranks_than_cores();
}

YieldsInMpi::YieldsInMpi() {
  if (found().is_wanted && num_blocking++ == 0) found().set(true);
}

YieldsInMpi::~YieldsInMpi() {
  if (found().is_wanted && --num_blocking == 0) found().set(false);
}

}  // namespace shardmark
