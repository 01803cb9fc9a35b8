// A map from addresses to memory and the communicators that it is registered with.
#include "comm/nccl/registrations.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace shardmark {
namespace {

// Compares the objects that two pointers belong to. This also works if one of the objects is gone, and then
// never takes a new communicator at the same address for the old one.
bool is_same(const std::weak_ptr<Registrar>& a, const std::shared_ptr<Registrar>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

void Registrations::add(void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  memories_[reinterpret_cast<uintptr_t>(data)] = {bytes, {}};
}

void Registrations::remove(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(reinterpret_cast<uintptr_t>(data));
  if (found == memories_.end()) return;
  for (const Enrolled& enrolled : found->second.enrolled)
    if (const auto by = enrolled.by.lock(); by && enrolled.handle != nullptr) by->dismiss(enrolled.handle);
  memories_.erase(found);
}

void Registrations::use(const void* data, const std::shared_ptr<Registrar>& by) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(data);
  // The memory that holds the address begins at or before it: it is the one before the first that begins
  // behind it.
  const auto after = memories_.upper_bound(address);
  if (after == memories_.begin()) return;
  auto& [begin, memory] = *std::prev(after);
  if (address >= begin + memory.bytes) return;
  auto& enrolled = memory.enrolled;
  if (std::any_of(enrolled.begin(), enrolled.end(), [&](const Enrolled& e) { return is_same(e.by, by); }))
    return;
  std::erase_if(enrolled, [](const Enrolled& e) { return e.by.expired(); });
  // The entry is made before registration is tried and stays if it fails, so that each communicator tries
  // once.
  enrolled.push_back({by, nullptr});
  const std::string failure =
      by->enroll(reinterpret_cast<void*>(begin), memory.bytes, &enrolled.back().handle);
  if (failure.empty()) return;
  enrolled.back().handle = nullptr;
  const std::string text = format_bytes(static_cast<double>(memory.bytes)) +
                           " could not be registered with NCCL, whose operations copy them: " + failure;
  if (failure_.empty()) failure_ = text;
  if (!std::exchange(said_, true)) say_(text);
}

std::string Registrations::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, "");
}

}  // namespace shardmark
