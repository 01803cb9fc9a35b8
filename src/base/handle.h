// A move-only owner of a C handle (hid_t, MPI_Comm, ncclComm_t, a file descriptor).
#pragma once

#include <utility>

namespace shardmark {

// Owns one value and releases it on destruction. Release is a callable type with void operator()(T); `none`
// is the value that owns nothing.
template <class T, class Release>
class Handle {
 public:
  explicit Handle(T none = T{}) : value_(none), none_(none) {}
  Handle(T value, T none) : value_(value), none_(none) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, other.none_)), none_(other.none_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      none_ = other.none_;
      value_ = std::exchange(other.value_, other.none_);
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  T get() const { return value_; }
  explicit operator bool() const { return value_ != none_; }
  void reset() noexcept {
    if (value_ != none_) Release{}(std::exchange(value_, none_));
  }

 private:
  T value_;
  T none_;
};

}  // namespace shardmark
