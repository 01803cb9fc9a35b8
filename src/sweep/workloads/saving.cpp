// Writes and reads checkpoints between steps, or beside them.
//
// A write lasts from a barrier until the files of all ranks are complete. Where it is asynchronous, ranks
// copy their state to host memory and train on while a thread of each writes. The stall is then how much
// longer the steps until the end of the write took than as many steps before, the copy included. Otherwise
// ranks stand still, and the stall is the write.
#include "sweep/workloads/saving.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/node.h"
#include "base/stats.h"
#include "checkpoint/fast_hash.h"
#include "checkpoint/shard_files.h"
#include "device/device.h"
#include "device/meter.h"
#include "schema/file.h"
#include "strategies/brief_text.h"
#include "strategies/saved_state.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

// A point writes and reads this many checkpoints, if the time limit of sampling allows it.
constexpr int64_t kCheckpoints = 5;
constexpr int64_t kUsualSteps = 10;

constexpr const char *kWriting = "writing a checkpoint", *kReading = "reading a checkpoint",
                     *kComparing = "comparing a checkpoint";

bool is_set(const Choice& save, const char* option) { return save.options.at(option).get<bool>(); }

std::string folder_of(const Choice& save) { return save.options.at("folder").get<std::string>(); }

}  // namespace

void Saving::check(const Point& point, int rank) {
  const Choice& save = point.training.save;
  const bool sharded = save.name == "sharded";
  if (!sharded && rank != 0) return;
  const std::string folder = folder_of(save), option = fmt::format("save: {}", brief_text("save", save));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw UsageError(
        fmt::format("{}: cannot make the folder: {}; name one that exists", option, error.message()));
  require_writable_directory(folder, option);
  require_room(folder,
               sharded ? strategies::sharded_state_bytes(point) : strategies::whole_state_bytes(point),
               option, "the checkpoints");
}

// The folder is this run's own, because another run may measure the same point.
Saving::Saving(const HostGroup& group, TrainingSetup& setup, Heartbeat& heartbeat, std::function<void()> step)
    : group_(group), setup_(setup), heartbeat_(heartbeat), step_(std::move(step)) {
  const Choice& save = setup.point.training.save;
  sharded_ = save.name == "sharded";
  sync_ = is_set(save, "sync");
  async_ = is_set(save, "async");
  const std::string own = fmt::format("shardmark-checkpoint-{}-{}", host_name(), ::getpid());
  folder_ = folder_of(save) + "/" + group.broadcast(own, 0);
}

// What this rank writes, or on rank 0 the whole state.
std::string Saving::file_of(int rank) const {
  return sharded_ ? shard_path(folder_, rank) : folder_ + "/state.safetensors";
}

// A write may take longer than the watchdog waits for a sign of life.
void Saving::beat(const char* stage) { heartbeat_.stage(stage); }

// For what takes long and gives no sign of its own.
void Saving::with_beats(const char* stage, const std::function<void()>& body) {
  std::future<void> done = std::async(std::launch::async, body);
  while (done.wait_for(std::chrono::seconds(1)) != std::future_status::ready) beat(stage);
  done.get();
}

Verdict Saving::measure(Record& record) {
  Verdict verdict = agree(group_, attempt([&] {
                            std::error_code error;
                            fs::create_directories(folder_, error);
                            if (error)
                              throw UsageError("cannot make the folder " + folder_ + ": " + error.message());
                          }));
  if (verdict.ok()) verdict = write_all();
  if (verdict.ok()) verdict = read_all();
  remove_files();
  if (!verdict.ok() || group_.rank() != 0) return verdict;
  const auto keep = [&](const char* name, const std::vector<double>& seconds, double Measures::*measure) {
    record.samples.push_back({name, 1, std::ssize(seconds), seconds});
    record.measures.*measure = median(seconds);
  };
  keep("checkpoint_write", write_s_, &Measures::checkpoint_write_s);
  keep("checkpoint_stall", stall_s_, &Measures::checkpoint_stall_s);
  keep("checkpoint_read", read_s_, &Measures::checkpoint_read_s);
  record.measures.checkpoint_bytes = bytes_;
  return {};
}

// One decision of all ranks.
bool Saving::goes_on(double begin_s, int64_t done) const {
  const bool mine =
      done < kCheckpoints && (done == 0 || now_s() - begin_s < setup_.point.sampling.time_limit_s);
  return group_.broadcast(static_cast<int64_t>(mine), 0) != 0;
}

Verdict Saving::write_all() {
  if (async_) {
    group_.barrier();
    const double begin_s = now_s();
    const int64_t steps = train_while([](int64_t done) { return done < kUsualSteps; });
    usual_step_s_ = group_.max(now_s() - begin_s) / static_cast<double>(steps);
  }
  const double begin_s = now_s();
  for (int64_t done = 0; goes_on(begin_s, done); ++done)
    if (Verdict verdict = write_once(); !verdict.ok()) return verdict;
  std::error_code none;
  const auto own = sharded_ || group_.rank() == 0 ? fs::file_size(file_of(group_.rank()), none) : 0;
  bytes_ = group_.sum(static_cast<double>(none ? 0 : own));
  return {};
}

Verdict Saving::write_once() {
  beat(kWriting);
  Verdict mine = attempt([&] {
    hash_written_ = hash_of_state();
    std::error_code ignored;  // a disk need not have room for two, and removing a file takes time, too
    if (sharded_ || group_.rank() == 0) fs::remove(file_of(group_.rank()), ignored);
  });
  if (Verdict verdict = agree(group_, mine); !verdict.ok()) return verdict;
  group_.barrier();
  const double begin_s = now_s();
  std::unique_ptr<StateFile> file = open();
  if (async_) return write_beside_steps(begin_s, std::move(file));
  std::string trouble;
  const auto write = [&] {
    visit(/*copies=*/false, [&](const std::string& name, const at::Tensor& value) {
      file->add(name, value);
      beat(kWriting);
    });
  };
  // The whole state is gathered in collectives, so nothing may throw there.
  mine = Verdict();
  if (sharded_)
    mine = attempt(write);
  else
    write();
  if (file) with_beats(kWriting, [&] { trouble = file->finish(sync_); });
  write_s_.push_back(group_.max(now_s() - begin_s));
  stall_s_.push_back(write_s_.back());
  if (mine.ok() && !trouble.empty()) mine = {Outcome::failed, trouble};
  return agree(group_, mine);
}

Verdict Saving::write_beside_steps(double begin_s, std::unique_ptr<StateFile> file) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const auto copy = [&] {
    const meter::Scope in_host_memory(MemoryUse::offloaded);
    visit(/*copies=*/true, [&](const std::string& name, const at::Tensor& value) {
      tensors.emplace_back(name, value);
      beat(kWriting);
    });
  };
  if (!sharded_) {
    copy();  // in collectives
  } else if (Verdict verdict = agree(group_, attempt(copy)); !verdict.ok()) {
    return verdict;
  }
  std::string trouble;
  double end_s = now_s();
  std::atomic<bool> is_done = file == nullptr;
  std::jthread writer;
  if (file)
    writer = std::jthread([&] {
      for (const auto& [name, value] : tensors) file->add(name, value);
      trouble = file->finish(sync_);
      end_s = now_s();
      is_done = true;
    });
  // A rank whose own file is complete trains on until the files of all ranks are, because steps are
  // collective. The stall is what these steps took beyond their usual time.
  const int64_t steps = train_while([&](int64_t) { return !is_done; });
  const double elapsed_s = now_s() - begin_s;
  if (writer.joinable()) writer.join();
  write_s_.push_back(group_.max(end_s - begin_s));
  stall_s_.push_back(group_.max(elapsed_s) - static_cast<double>(steps) * usual_step_s_);
  return agree(group_, trouble.empty() ? Verdict() : Verdict{Outcome::failed, trouble});
}

// Trains at least one step, and goes on as long as any rank wants to. Returns the number of steps.
int64_t Saving::train_while(const std::function<bool(int64_t steps)>& wants_more) {
  int64_t steps = 0;
  do {
    step_();
    synchronize(setup_.comm.device());
    ++steps;
  } while (group_.max(static_cast<int64_t>(wants_more(steps))) != 0);
  setup_.executor->recorder().end();
  setup_.executor->recorder().take();
  return steps;
}

// The file that this rank writes, if any.
std::unique_ptr<StateFile> Saving::open() const {
  if (sharded_) return own_state_file(folder_, setup_);
  if (group_.rank() != 0) return nullptr;
  return whole_state_file(file_of(0), setup_, State::all, {{"format", "pt"}});
}

void Saving::visit(bool copies, const StateVisitor& visitor) {
  if (sharded_)
    visit_own_state(setup_, copies, visitor);
  else
    visit_whole_state(setup_, State::all, group_.rank() == 0 ? visitor : StateVisitor());
}

Verdict Saving::read_all() {
  const double begin_s = now_s();
  for (int64_t done = 0; goes_on(begin_s, done); ++done)
    if (Verdict verdict = read_once(); !verdict.ok()) return verdict;
  return {};
}

// What is equal after a checkpoint has been read. A state in one file brings rank 0's buffers to all copies
// of the model, and a residual only to the same program, so these are not compared then.
std::vector<TrainingState::Own> Saving::compared() const {
  std::vector<TrainingState::Own> all = own_state(setup_);
  std::erase_if(all, [this](const auto& own) { return !sharded_ && !own.of_model; });
  return all;
}

uint64_t Saving::hash_of_state() {
  constexpr int64_t kPiece = 1 << 20;  // elements
  FastHash hash;
  for (const auto& own : compared()) {
    hash.add(own.name);
    const at::Tensor flat = own.values.reshape({-1});
    for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
      const at::Tensor piece =
          flat.narrow(0, begin, std::min(kPiece, flat.numel() - begin)).cpu().contiguous();
      hash.add({static_cast<const char*>(piece.const_data_ptr()), piece.nbytes()});
      beat(kComparing);
    }
  }
  return hash.value();
}

// Overwrites the state before it is read. Beside a write training has gone on, so what is read is older.
Verdict Saving::read_once() {
  beat(kReading);
  group_.barrier();
  forget_cached();
  for (const auto& own : compared()) own.values.zero_();
  synchronize(setup_.comm.device());
  group_.barrier();
  const double begin_s = now_s();
  Verdict verdict = sharded_ ? read_shards() : read_whole();
  synchronize(setup_.comm.device());
  read_s_.push_back(group_.max(now_s() - begin_s));
  if (!verdict.ok()) return verdict;
  const bool differs = hash_of_state() != hash_written_;
  return agree(group_, differs ? Verdict{Outcome::wrong,
                                         "wrong: the state that was read is not the one that was written"}
                               : Verdict());
}

Verdict Saving::read_whole() {
  std::optional<SafetensorsFile> file;
  Verdict verdict = agree(group_, attempt([&] {
                            if (group_.rank() != 0) return;
                            file.emplace(file_of(0));
                            with_beats(kReading, [&] { file->verify(); });
                          }));
  if (!verdict.ok()) return verdict;
  return agree(group_, attempt([&] {
                 load_state(setup_, setup_.comm, State::all, file ? &*file : nullptr, /*warns=*/false);
               }));
}

Verdict Saving::read_shards() {
  Verdict verdict =
      agree(group_, attempt([&] { load_own_state(folder_, setup_, [this] { beat(kReading); }); }));
  if (!verdict.ok()) return verdict;
  setup_.state->optimizer().parameters_changed();
  setup_.state->publish();
  return {};
}

// A checkpoint is read after a crash, when it is in no node's memory.
void Saving::forget_cached() const {
  for (const int rank : sharded_ ? ranks_read(setup_) : std::set<int>{0}) {
    if (!sharded_ && group_.rank() != 0) return;
    const File own(::open(file_of(rank).c_str(), O_RDONLY | O_CLOEXEC));
    if (!own) continue;
    // The kernel drops only pages that are on the disk already.
    ::fsync(own.get());
    ::posix_fadvise(own.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

void Saving::remove_files() const {
  std::error_code error;
  if (sharded_ || group_.rank() == 0) fs::remove(file_of(group_.rank()), error);
  group_.barrier();
  if (group_.rank() != 0) return;
  fs::remove_all(folder_, error);
  if (error) log_warning(fmt::format("what was saved stays in {}: {}", folder_, error.message()));
}

}  // namespace shardmark
