// Writes and reads checkpoints between steps, or beside them.
//
// A write lasts from a barrier until the files of all ranks are complete. Where it is asynchronous, ranks
// copy their state to host memory and train on while a thread of each writes. The stall is then what the
// steps until the end of the write took longer than as many steps took before, the copy included. Otherwise
// ranks stand still, and the stall is the write.
#include "sweep/workloads/saving.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stats.h"
#include "checkpoint/shard_files.h"
#include "device/device.h"
#include "device/meter.h"
#include "schema/file.h"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

// Of each, if the time limit of sampling allows it.
constexpr int64_t kCheckpoints = 5;
constexpr int64_t kUsualSteps = 10;

bool is_set(const Choice& save, const char* option) { return save.options.at(option).get<bool>(); }

Verdict failed_if(const std::string& trouble) {
  return trouble.empty() ? Verdict() : Verdict{Outcome::failed, trouble};
}

// Returns the first line of what `body` throws.
std::string trouble_of(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

}  // namespace

Saving::Saving(const HostGroup& group, TrainingSetup& setup, Heartbeat& heartbeat, std::function<void()> step)
    : group_(group), setup_(setup), heartbeat_(heartbeat), step_(std::move(step)) {
  const Choice& save = setup.point.training.save;
  sharded_ = save.name == "sharded";
  sync_ = is_set(save, "sync");
  async_ = is_set(save, "async");
  folder_ = save.options.at("folder").get<std::string>() + "/shardmark-" + point_id(setup.point);
}

// Rank 0's file, or this rank's.
std::string Saving::file() const {
  return sharded_ ? shard_path(folder_, group_.rank()) : folder_ + "/state.safetensors";
}

Verdict Saving::measure(Record& record) {
  heartbeat_.stage("checkpoint");
  const auto make_folder = [this] {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      throw UsageError("save: cannot make the folder " + folder_ + ": " + error.message() +
                       "; name another: --set \"save=full(folder=PATH)\"");
  };
  Verdict verdict = agree(group_, failed_if(trouble_of(make_folder)));
  if (verdict.ok()) verdict = write_all();
  if (verdict.ok()) verdict = read_all();
  group_.barrier();
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
  const auto own = sharded_ || group_.rank() == 0 ? fs::file_size(file(), none) : 0;
  bytes_ = group_.sum(static_cast<double>(none ? 0 : own));
  return {};
}

Verdict Saving::write_once() {
  heartbeat_.stage("writing a checkpoint");
  bits_written_ = sum_of_bits(compared());
  group_.barrier();
  const double begin_s = now_s();
  const std::unique_ptr<StateFile> file = open();
  if (async_) return write_beside_steps(begin_s, file.get());
  visit(/*copies=*/false, [&](const std::string& name, const at::Tensor& value) { file->add(name, value); });
  const std::string trouble = file ? file->finish(sync_) : "";
  write_s_.push_back(group_.max(now_s() - begin_s));
  stall_s_.push_back(write_s_.back());
  return agree(group_, failed_if(trouble));
}

Verdict Saving::write_beside_steps(double begin_s, StateFile* file) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  {
    const meter::Scope in_host_memory(MemoryUse::offloaded);
    visit(/*copies=*/true,
          [&](const std::string& name, const at::Tensor& value) { tensors.emplace_back(name, value); });
  }
  std::string trouble;
  double end_s = now_s();
  std::atomic<bool> is_done = file == nullptr;
  std::jthread writer;
  if (file != nullptr)
    writer = std::jthread([&] {
      for (const auto& [name, value] : tensors) file->add(name, value);
      trouble = file->finish(sync_);
      end_s = now_s();
      is_done = true;
    });
  const int64_t steps = train_while([&](int64_t) { return !is_done; });
  const double elapsed_s = now_s() - begin_s;
  if (writer.joinable()) writer.join();
  write_s_.push_back(group_.max(end_s - begin_s));
  stall_s_.push_back(group_.max(elapsed_s) - static_cast<double>(steps) * usual_step_s_);
  return agree(group_, failed_if(trouble));
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
  return whole_state_file(file(), setup_, State::all, {{"format", "pt"}});
}

void Saving::visit(bool copies, const StateVisitor& visitor) const {
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

// The tensors that are equal after a checkpoint has been read. A state in one file brings rank 0's buffers to
// all copies of the model, so these are not among them.
std::vector<at::Tensor> Saving::compared() const {
  std::vector<at::Tensor> all;
  for (const auto& own : setup_.state->own())
    if (sharded_ || own.of_model) all.push_back(own.values);
  return all;
}

// Overwrites the state before it is read. Beside a write training has gone on, so what is read is older.
Verdict Saving::read_once() {
  heartbeat_.stage("reading a checkpoint");
  for (const at::Tensor& values : compared()) values.zero_();
  forget_cached();
  synchronize(setup_.comm.device());
  group_.barrier();
  const double begin_s = now_s();
  Verdict verdict = sharded_ ? read_shards() : read_whole();
  synchronize(setup_.comm.device());
  read_s_.push_back(group_.max(now_s() - begin_s));
  if (!verdict.ok()) return verdict;
  const bool differs = sum_of_bits(compared()) != bits_written_;
  return agree(group_, differs ? Verdict{Outcome::wrong, "wrong: the state that was read from " + file() +
                                                             " is not the one that was written"}
                               : Verdict());
}

Verdict Saving::read_whole() {
  std::optional<SafetensorsFile> file;
  const std::string trouble = trouble_of([&] {
    if (group_.rank() != 0) return;
    file.emplace(this->file());
    file->verify();
  });
  if (Verdict verdict = agree(group_, failed_if(trouble)); !verdict.ok()) return verdict;
  return agree(
      group_,
      failed_if(trouble_of([&] { load_state(setup_, setup_.comm, State::all, file ? &*file : nullptr); })));
}

Verdict Saving::read_shards() {
  Verdict verdict = agree(group_, failed_if(trouble_of([&] { load_own_state(folder_, setup_); })));
  if (!verdict.ok()) return verdict;
  setup_.state->optimizer().parameters_changed();
  setup_.state->publish();
  return {};
}

// A checkpoint is read after a crash, when it is in no node's memory.
void Saving::forget_cached() const {
  const File own = open_if_exists(file(), O_RDONLY);
  if (!own) return;
  ::fsync(own.get());
  ::posix_fadvise(own.get(), 0, 0, POSIX_FADV_DONTNEED);
}

void Saving::remove_files() const {
  std::error_code ignored;
  if (sharded_ || group_.rank() == 0) fs::remove(file(), ignored);
  group_.barrier();
  fs::remove(folder_, ignored);  // if it is empty
}

}  // namespace shardmark
