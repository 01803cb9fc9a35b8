// How a thread waits for something that another thread or process does, when nothing can wake it up: it
// polls, and calls pause() after every poll that found nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace shardmark {

// On a core that nobody else wants, a wait only polls and yields, so that it ends as soon as it can. A yield
// that returns late (with more ranks than cores: three in a row) shows that something else wants the core:
// another program, or a rank of the job that computes. From then on, waits of this process sleep between
// polls. A yield would not do: before Linux 6.6 a thread that yields gets as much of the core as the work
// that it waits for, and since then it gets the core back only after the other's slice. A sleep is a
// sixteenth of the time waited so far, from 20 us to 0.5 ms, so a wait ends late by about 6 % at most. Every
// 100 ms a wait yields again, to see whether the core is free.
class Backoff {
 public:
  void pause();
  // Tells the waits of this thread that a poll found something to do, though not yet all that they wait for:
  // the next pause() begins anew. An operation of many messages would otherwise sleep before each of them.
  static void progress_made();
  // From now on waits of this process yield their core almost at once.
  static void there_are_more_ranks_than_cores();

 private:
  int polls_ = 0;
  int64_t progress_ = 0;  // of this thread, when polls_ was 0
  std::chrono::steady_clock::time_point since_;
};

}  // namespace shardmark
