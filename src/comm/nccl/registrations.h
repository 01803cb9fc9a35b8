// Which communicators know which memory. NCCL moves registered memory without a staging copy, but every
// communicator has to be told of it: here at its first operation on it, so that those of teams and of stages
// know what they use, and no more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shardmark {

// A communicator, as memory sees it.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // handle: what dismiss() takes. Returns why it failed; empty: it did not.
  virtual std::string enroll(void* data, size_t bytes, void** handle) = 0;
  virtual void dismiss(void* handle) noexcept = 0;
};

class Registrations {
 public:
  // say: called with the first failure, and never again.
  explicit Registrations(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void add(void* data, size_t bytes);
  void remove(void* data) noexcept;  // dismissed by the communicators that are left
  // `by` is about to move what lies at `data`. Memory that was not added is none of ours.
  void use(const void* data, const std::shared_ptr<Registrar>& by);
  // The first failure since the last call; empty: there was none.
  std::string take_failure();

 private:
  struct Enrolled {
    std::weak_ptr<Registrar> by;  // a communicator that ends forgets its memory by itself
    void* handle;                 // nullptr: it failed
  };
  struct Memory {
    size_t bytes;
    std::vector<Enrolled> enrolled;
  };

  std::mutex mutex_;  // backward starts operations from a thread of its own
  std::function<void(const std::string&)> say_;
  std::map<uintptr_t, Memory> memories_;
  bool said_ = false;
  std::string failure_;
};

}  // namespace shardmark
