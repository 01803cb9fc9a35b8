// What a rank is doing right now. The rank writes it to a page that the other ranks of its node can read when
// the job hangs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shardmark {

// A short text that one thread writes and others read, word by word. A reader may see half of the old and
// half of the new text, but the behaviour is always defined, and a reader of a word also sees everything that
// the writer stored before it. Longer texts are truncated.
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

// The page of one rank, in memory that the ranks of a node share. A page of zeroes is valid. Steps, stages
// and operations are numbered from 1 within a configuration. Times are seconds of the node's monotonic clock.
struct alignas(128) HeartbeatPage {
  struct Operation {
    std::atomic<int64_t> number;
    SharedText<24> name;
    std::atomic<double> bytes;
    std::atomic<double> at_s;
    // For a message of a pipeline, the stage at its other end, from 1; 0 for other operations.
    std::atomic<int64_t> peer;
  };
  // Values of `waits`. kMeets: the rank has done its part of the stage and waits for the others at its end.
  // kRests: the rank has done its part of the configuration, so nobody waits for it.
  static constexpr int64_t kMeets = 1, kRests = 2;
  // Set once, before anything else.
  std::atomic<int64_t> pid;
  // The PID namespace in which `pid` is valid. Ranks in other containers have another one.
  std::atomic<int64_t> pid_space;
  // Written by the rank's watchdog: the time of its last poll. A rank whose watchdog polls is alive.
  std::atomic<double> looked_s;
  // Written by the rank's Heartbeat.
  std::atomic<double> at_s;             // of the last beat; any progress is a beat
  SharedText<192> point;                // empty: none runs, and nobody waits for this rank
  std::atomic<int64_t> num_points;      // configurations begun
  SharedText<40> stage;                 // phase of the configuration: set-up, forward ...
  std::atomic<int64_t> num_stages;      // phases begun; each block counts as one
  std::atomic<int64_t> step;            // steps begun
  std::atomic<int64_t> block;           // in the phase, from 1; 0: none
  std::atomic<int64_t> micro_batch;     // in a pipeline, from 1; 0: none
  std::atomic<int64_t> pipeline_stage;  // of this rank, from 1; 0: there is no pipeline
  std::atomic<int64_t> waits;           // kMeets or kRests; 0: the rank works
  Operation started, completed;         // the last ones
  Operation awaited;                    // what the rank waits for; number 0: nothing
};
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

// The node's monotonic clock, in seconds.
double watch_clock_s();

// A position in a configuration, numbered as on the page.
struct PlaceInPoint {
  int64_t step = 0;
  std::string stage = {};
  int64_t block = 0, micro_batch = 0, pipeline_stage = 0;
};
// Formats it: "step 12, backward of block 3"; in a pipeline "step 12, backward of block 3, micro-batch 0, in
// stage 1".
std::string place_text(const PlaceInPoint& place);
// Formats an operation: "all_gather #123 (4.00 MiB)", "send_recv #7 (1.00 MiB, with stage 0)".
std::string operation_text(const std::string& name, int64_t number, double bytes, int64_t peer);

// Writes a page. Only one thread at a time may call it. A note costs well under a microsecond.
class Heartbeat {
 public:
  explicit Heartbeat(HeartbeatPage& page, double (*clock_s)() = watch_clock_s)
      : page_(page), clock_s_(clock_s) {}

  void begin_point(std::string_view text);  // restarts all numbers
  void end_point();
  // The rank begins to work on something.
  void stage(std::string_view name);
  // The rank waits for the others at the end of something.
  void meet(std::string_view name);
  // The rank has done its part of the configuration, or has none.
  void rest();
  void step();
  void in_pipeline(int64_t stage);  // `stage` counts from 0; lasts until the next begin_point()
  // `index` and `micro_batch` count from 0. The micro-batch is noted in a pipeline only.
  void block(std::string_view stage, int64_t index, int64_t micro_batch = 0);
  // Notes the start of an operation and returns its number. `name` must be a literal. For a message, `peer`
  // is the rank at its other end; in the communicator of a pipeline ranks are stages.
  int64_t started(const char* name, double bytes, int64_t peer = -1);
  // Notes that the rank waits for this operation. If it waits for several, the one started first is kept. The
  // note lasts until an operation completes or a stage begins.
  void waits_for(int64_t number);
  void completed(int64_t number);

  std::string place() const;  // where it is now: "step 12, backward of block 3"
  // "all_gather #123 (4.00 MiB)"; "operation #123" if it started too long ago.
  std::string operation_text(int64_t number) const;

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
  // nullptr if the operation started too long ago, or in an earlier configuration.
  const Started* find(int64_t number) const;
  HeartbeatPage& page_;
  double (*clock_s_)();
  int64_t num_started_ = 0;
  // A ring of the last operations. The host of a GPU runs at most that many operations ahead.
  std::array<Started, 1024> last_started_;
};

}  // namespace shardmark
