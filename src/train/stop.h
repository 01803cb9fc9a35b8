// Requests to stop: Ctrl-C, SIGTERM from a scheduler, SIGUSR1 (which mpirun and srun pass on to ranks).
#pragma once

namespace shardmark {

// From now on the first of these signals only records the request; a second one ends the process at once.
void catch_stop_signals();
bool stop_requested();  // of this rank

}  // namespace shardmark
