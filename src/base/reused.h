// A pool of objects that are costly to make because a driver call makes them (events, streams). An object
// that nobody holds any more is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace shardmark {

template <class T>
class Reused {
 public:
  // Returns an object that nobody else holds. If all are held, `make` creates one more (a
  // std::shared_ptr<T>). The search is round-robin, so the object that was used longest ago is tried first.
  template <class Make>
  std::shared_ptr<T> get(const Make& make) {
    for (size_t tried = 0; tried < all_.size(); ++tried) {
      const std::shared_ptr<T>& one = all_[next_++ % all_.size()];
      if (one.use_count() == 1) return one;
    }
    return all_.emplace_back(make());
  }

 private:
  std::vector<std::shared_ptr<T>> all_;
  size_t next_ = 0;
};

}  // namespace shardmark
