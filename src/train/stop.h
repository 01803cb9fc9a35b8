// Requests to stop a run: Ctrl-C, SIGTERM from a scheduler, and SIGUSR1 (which mpirun and srun pass on to
// ranks).
#pragma once

namespace shardmark {

// From now on the first of these signals is only recorded; a second one ends the process at once.
void catch_stop_signals();
bool stop_requested();  // whether this rank got a signal

}  // namespace shardmark
