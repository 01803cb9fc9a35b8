// What a rank does right now, on a page that the other ranks of its node read when nothing moves any more.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shardmark {

// A short text that one thread writes and others read, word by word: what is read while it changes may be
// half of each, but never undefined; whoever reads it sees what its writer noted before. Cut to its size.
template <size_t kBytes>
class SharedText {
 public:
  void set(std::string_view text) {
    for (size_t i = 0; i < words_.size(); ++i) {
      uint64_t word = 0;
      if (i * 8 < text.size())
        std::memcpy(&word, text.data() + i * 8, std::min<size_t>(8, text.size() - i * 8));
      words_[i].store(word, std::memory_order_release);
    }
  }
  std::string get() const {
    std::array<char, kBytes + 1> text{};
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t word = words_[i].load(std::memory_order_acquire);
      std::memcpy(text.data() + i * 8, &word, 8);
    }
    return text.data();
  }

 private:
  static_assert(kBytes % 8 == 0);
  std::array<std::atomic<uint64_t>, kBytes / 8> words_;
};

// In memory that a node's ranks share; zeroes are a valid page. Numbers count within a point, from 1; times
// are of the node's monotonic clock.
struct alignas(128) HeartbeatPage {
  struct Operation {
    std::atomic<int64_t> number;
    SharedText<24> name;
    std::atomic<double> bytes;
    std::atomic<double> at_s;
    std::atomic<int64_t> peer;  // of a pipeline's message, the stage at its other end, from 1; 0: none
  };
  // meets: has done its part of the stage and waits for other ranks. rests: of the point, so that nobody
  // waits for this one.
  static constexpr int64_t kMeets = 1, kRests = 2;
  // Set before anything moves.
  std::atomic<int64_t> pid;
  std::atomic<int64_t> pid_space;  // where that number means this process: another one in another container
  // By the rank's watchdog.
  std::atomic<double> looked_s;  // its last look: a rank whose watchdog looks is alive
  // By its Heartbeat.
  std::atomic<double> at_s;             // of the last beat; a beat is anything that moves
  SharedText<192> point;                // empty: none, and nobody waits for this rank
  std::atomic<int64_t> num_points;      // begun
  SharedText<40> stage;                 // of the point: set-up, forward ...
  std::atomic<int64_t> num_stages;      // begun, blocks counted one by one
  std::atomic<int64_t> step;            // begun
  std::atomic<int64_t> block;           // of the stage, from 1; 0: none
  std::atomic<int64_t> micro_batch;     // that it computes in a pipeline, from 1; 0: none
  std::atomic<int64_t> pipeline_stage;  // that the rank is, from 1; 0: there are none
  std::atomic<int64_t> waits;           // kMeets, kRests; 0: works
  Operation started, completed;         // the last ones
  Operation awaited;                    // that it waits for since then; number 0: none
};
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

// Seconds of the node's monotonic clock.
double watch_clock_s();

// As on the page.
struct PlaceInPoint {
  int64_t step = 0;
  std::string stage = {};
  int64_t block = 0, micro_batch = 0, pipeline_stage = 0;
};
// "step 12, backward of block 3"; of a pipeline "step 12, backward of block 3, micro-batch 0, in stage 1"
std::string place_text(const PlaceInPoint& place);
// "all_gather #123 (4.00 MiB)", "send_recv #7 (1.00 MiB, with stage 0)"
std::string operation_text(const std::string& name, int64_t number, double bytes, int64_t peer);

// The writer's side. One thread at a time; a note costs well under a microsecond.
class Heartbeat {
 public:
  explicit Heartbeat(HeartbeatPage& page, double (*clock_s)() = watch_clock_s)
      : page_(page), clock_s_(clock_s) {}

  void begin_point(std::string_view text);  // numbers start anew
  void end_point();
  void stage(std::string_view name);  // computes, or whatever it is
  void meet(std::string_view name);   // waits for the other ranks at its end
  void rest();                        // has done its part of the point, or has none
  void step();
  void in_pipeline(int64_t stage);  // from 0, until the next point begins
  // From 0; micro-batches are told in a pipeline.
  void block(std::string_view stage, int64_t index, int64_t micro_batch = 0);
  // An operation of a communicator: its number. name: a literal; peer: of a message, the rank at its other
  // end.
  int64_t started(const char* name, double bytes, int64_t peer = -1);
  void waits_for(int64_t number);  // of several, the first is what it waits for; until a stage begins
  void completed(int64_t number);

  std::string place() const;  // "step 12, backward of block 3", where it is now
  std::string operation_text(
      int64_t number) const;  // "all_gather #123 (4.00 MiB)"; long ago: "operation #123"

 private:
  void begin_stage(std::string_view name, int64_t block, int64_t waits, int64_t micro_batch = 0);
  void beat() { beat(clock_s_()); }
  void beat(double at_s) { page_.at_s.store(at_s, std::memory_order_release); }
  struct Started {
    const char* name = "";
    double bytes = 0;
    int64_t peer = 0;  // from 1
  };
  void put(HeartbeatPage::Operation& note, int64_t number, double at_s) const;
  const Started* find(int64_t number) const;  // nullptr: too long ago, or in a point before this one
  HeartbeatPage& page_;
  double (*clock_s_)();
  int64_t num_started_ = 0;
  std::array<Started, 1024> last_started_;  // a GPU's host is that many operations ahead at most
};

}  // namespace shardmark
