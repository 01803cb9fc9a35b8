// A binomial tree over ranks numbered from its root: up, round k joins subtrees of 2^k ranks; down is the
// reverse.
#pragma once

#include <bit>

namespace shardmark {

class Tree {
 public:
  Tree(int rank, int size, int root) : number_((rank - root + size) % size), size_(size), root_(root) {}

  int depth() const { return std::bit_width(static_cast<unsigned>(size_ - 1)); }
  // The rank that this one hands its subtree to in round k, or -1; and the one it is handed a subtree by, or
  // -1.
  int parent(int round) const {
    return number_ % (2 << round) == 1 << round ? rank_of(number_ - (1 << round)) : -1;
  }
  int child(int round) const {
    const bool joins = number_ % (2 << round) == 0 && number_ + (1 << round) < size_;
    return joins ? rank_of(number_ + (1 << round)) : -1;
  }

 private:
  int rank_of(int number) const { return (number + root_) % size_; }
  int number_;
  int size_;
  int root_;
};

}  // namespace shardmark
