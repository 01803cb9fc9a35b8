// Things that cost a call of a driver to make: what nobody holds any more is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace shardmark {

template <class T>
class Reused {
 public:
  // One that nobody holds; `make` makes a std::shared_ptr<T> where all are held. Those last used longest ago
  // come first.
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
