// Keeps track of which memory is registered with which communicators. NCCL moves registered memory without a
// staging copy, but each communicator must register it (ncclCommRegister). That happens at the communicator's
// first operation on the memory. So communicators of process groups and of stages register exactly what they
// use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shardmark {

// A communicator as far as registration is concerned.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // Registers memory. `handle` receives what dismiss() takes. Returns why it failed, or an empty text.
  virtual std::string enroll(void* data, size_t bytes, void** handle) = 0;
  virtual void dismiss(void* handle) noexcept = 0;
};

class Registrations {
 public:
  // `say` is called with the first failure only.
  explicit Registrations(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void add(void* data, size_t bytes);
  void remove(void* data) noexcept;  // also deregisters it
  // Call before `by` moves what lies at `data`. Memory that was not added is ignored.
  void use(const void* data, const std::shared_ptr<Registrar>& by);
  // Returns the first failure since the last call; empty if there was none.
  std::string take_failure();

 private:
  struct Enrolled {
    // Weak, because a communicator that is destroyed drops its registrations by itself.
    std::weak_ptr<Registrar> by;
    void* handle;  // nullptr if registration failed
  };
  struct Memory {
    size_t bytes;
    std::vector<Enrolled> enrolled;
  };

  std::mutex mutex_;  // autograd starts operations from its own thread
  std::function<void(const std::string&)> say_;
  std::map<uintptr_t, Memory> memories_;
  bool said_ = false;
  std::string failure_;
};

}  // namespace shardmark
