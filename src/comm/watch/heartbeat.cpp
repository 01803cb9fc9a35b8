// Writes a rank's heartbeat page.
#include "comm/watch/heartbeat.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/units.h"

namespace shardmark {
namespace {

template <class T>
void set(std::atomic<T>& place, T value) {
  place.store(value, std::memory_order_relaxed);
}

// A plain load and store are enough, because each page has only one writer.
void count(std::atomic<int64_t>& place) { set(place, place.load(std::memory_order_relaxed) + 1); }

}  // namespace

double watch_clock_s() { return now_s(); }

std::string place_text(const PlaceInPoint& place) {
  std::string text = place.step > 0 ? fmt::format("step {}, {}", place.step, place.stage) : place.stage;
  if (place.block > 0) text += fmt::format(" of block {}", place.block - 1);
  if (place.micro_batch > 0) text += fmt::format(", micro-batch {}", place.micro_batch - 1);
  return place.pipeline_stage > 0 ? fmt::format("{}, in stage {}", text, place.pipeline_stage - 1) : text;
}

std::string operation_text(const std::string& name, int64_t number, double bytes, int64_t peer) {
  const std::string with = peer > 0 ? fmt::format(", with stage {}", peer - 1) : "";
  return fmt::format("{} #{} ({}{})", name, number, format_bytes(bytes), with);
}

void Heartbeat::begin_point(std::string_view text) {
  num_started_ = 0;
  for (auto* number : {&page_.started.number, &page_.completed.number, &page_.awaited.number, &page_.step,
                       &page_.num_stages, &page_.pipeline_stage})
    set<int64_t>(*number, 0);
  count(page_.num_points);
  begin_stage("start", 0, 0);
  // Set last, so that whoever reads the new text finds the beat of this configuration, not a stale one.
  page_.point.set(text);
}

void Heartbeat::end_point() {
  page_.point.set("");
  beat();
}

void Heartbeat::begin_stage(std::string_view name, int64_t block, int64_t waits, int64_t micro_batch) {
  page_.stage.set(name);
  set(page_.block, block);
  set(page_.micro_batch, micro_batch);
  set(page_.waits, waits);
  set<int64_t>(page_.awaited.number, 0);
  count(page_.num_stages);
  beat();
}

void Heartbeat::stage(std::string_view name) { begin_stage(name, 0, 0); }
void Heartbeat::meet(std::string_view name) { begin_stage(name, 0, HeartbeatPage::kMeets); }
void Heartbeat::rest() { begin_stage("", 0, HeartbeatPage::kRests); }
void Heartbeat::in_pipeline(int64_t stage) { set(page_.pipeline_stage, stage + 1); }
void Heartbeat::block(std::string_view stage, int64_t index, int64_t micro_batch) {
  const bool is_told = page_.pipeline_stage.load(std::memory_order_relaxed) > 0;
  begin_stage(stage, index + 1, 0, is_told ? micro_batch + 1 : 0);
}

void Heartbeat::step() {
  count(page_.step);
  beat();
}

const Heartbeat::Started* Heartbeat::find(int64_t number) const {
  const bool is_known =
      number > 0 && number <= num_started_ && number > num_started_ - std::ssize(last_started_);
  return is_known ? &last_started_[static_cast<size_t>(number) % last_started_.size()] : nullptr;
}

void Heartbeat::put(HeartbeatPage::Operation& note, int64_t number, double at_s) const {
  const Started* const known = find(number);
  const Started started = known == nullptr ? Started{} : *known;
  note.name.set(started.name);
  set(note.bytes, started.bytes);
  set(note.peer, started.peer);
  set(note.at_s, at_s);
  set<int64_t>(note.number, known == nullptr ? 0 : number);
}

int64_t Heartbeat::started(const char* name, double bytes, int64_t peer) {
  const double now = clock_s_();
  ++num_started_;
  last_started_[static_cast<size_t>(num_started_) % last_started_.size()] = {
      name, bytes, page_.pipeline_stage.load(std::memory_order_relaxed) > 0 ? peer + 1 : 0};
  put(page_.started, num_started_, now);
  beat(now);
  return num_started_;
}

void Heartbeat::waits_for(int64_t number) {
  const int64_t now = page_.awaited.number.load(std::memory_order_relaxed);
  if (now == 0 || number < now) put(page_.awaited, number, clock_s_());
}

void Heartbeat::completed(int64_t number) {
  const double now = clock_s_();
  set<int64_t>(page_.awaited.number, 0);
  put(page_.completed, number, now);
  beat(now);
}

std::string Heartbeat::place() const {
  const auto number = [](const std::atomic<int64_t>& place) { return place.load(std::memory_order_relaxed); };
  return place_text({number(page_.step), page_.stage.get(), number(page_.block), number(page_.micro_batch),
                     number(page_.pipeline_stage)});
}

std::string Heartbeat::operation_text(int64_t number) const {
  const Started* const known = find(number);
  return known == nullptr ? fmt::format("operation #{}", number)
                          : shardmark::operation_text(known->name, number, known->bytes, known->peer);
}

}  // namespace shardmark
