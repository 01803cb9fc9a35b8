// Synthetic samples for any model. They need no files and almost no time to fetch, and can be learned, so
// that a loss can fall.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "data/order/sampler.h"
#include "data/token_batch.h"

namespace shardmark::synthetic {
namespace {

// Every sample is a window of a fixed pool of this many random values. That is as good as fresh values, but
// costs only a copy.
constexpr int64_t kPoolValues = 1 << 18;
// More samples would not make an evaluation more informative, and with a very large `size` evaluating a
// twentieth of it would not end.
constexpr int64_t kMostHeldOut = 10'000;

// What a random number is for; part of its hash.
enum Purpose { kTarget, kPattern, kNoise, kPool, kSuccessor };

// Images and rows: the pattern of a class plus the noise of a sample, together of unit variance.
class SyntheticValues : public DataSource {
 public:
  SyntheticValues(int64_t size, const DataContext& context)
      : num_held_out_(std::min(held_out_of(size, context), kMostHeldOut)),
        size_(size - num_held_out_),
        context_(context),
        numel_(c10::multiply_integers(context.sample.input)) {
    pool_.resize(static_cast<size_t>(kPoolValues + numel_));
    // Turns 64 random bits into a uniform value of variance 1/2.
    const float scale = std::sqrt(1.5f) / (uint64_t{1} << 63);
    for (size_t i = 0; i < pool_.size(); ++i)
      pool_[i] = scale * static_cast<float>(static_cast<int64_t>(hash_of(context.seed, kPool, i)));
    values_ = at::from_blob(pool_.data(), {std::ssize(pool_)}, at::kFloat);
  }

  int64_t size() const override { return size_; }
  int64_t num_held_out() const override { return num_held_out_; }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    std::vector<int64_t> shape = {std::ssize(draws)};
    shape.insert(shape.end(), context_.sample.input.begin(), context_.sample.input.end());
    Batch batch{empty_on_host(shape, context_.dtype, pinned),
                empty_on_host({std::ssize(draws)}, at::kLong, pinned)};
    int64_t* targets = batch.targets.data_ptr<int64_t>();
    // Summed in float, then converted to the batch's type; both loops vectorise.
    const at::Tensor sum = at::empty(context_.sample.input, at::kFloat);
    for (int64_t i = 0; i < std::ssize(draws); ++i) {
      const int64_t index = draws[static_cast<size_t>(i)].index;
      targets[i] = below(hash_of(context_.seed, kTarget, index), context_.sample.num_classes);
      at::Tensor image = sum;
      at::add_out(image, window(kPattern, targets[i]), window(kNoise, index));
      batch.inputs[i].copy_(sum);
    }
    return batch;
  }

 private:
  at::Tensor window(Purpose purpose, int64_t key) const {
    const int64_t begin = below(hash_of(context_.seed, purpose, key), kPoolValues);
    return values_.narrow(0, begin, numel_).view(context_.sample.input);
  }

  int64_t num_held_out_, size_;
  DataContext context_;
  int64_t numel_;  // of one sample
  // The pool belongs to the data set, like the pages of a file. It is not allocated with torch's allocator,
  // because the meter would count it as memory of a step.
  std::vector<float> pool_;
  at::Tensor values_;  // a view of the pool
};

// Tokens: with a chance of 7/8 the next token is the successor of the current one under a fixed permutation
// of the vocabulary, otherwise it is random.
class SyntheticTokens : public DataSource {
 public:
  SyntheticTokens(int64_t size, const DataContext& context)
      : num_held_out_(std::min(held_out_of(size, context), kMostHeldOut)),
        size_(size - num_held_out_),
        seed_(context.seed),
        length_(context.sample.input.at(0)) {
    const int64_t vocabulary = context.sample.num_classes;
    const Permutation permutation(vocabulary, hash_of(seed_, kSuccessor));
    std::vector<int64_t> successor(
        static_cast<size_t>(vocabulary));  // a table, because it is looked up a million times
    for (int64_t token = 0; token < vocabulary; ++token)
      successor[static_cast<size_t>(token)] = permutation(token);
    pool_.resize(static_cast<size_t>(kPoolValues + length_));
    for (size_t i = 0; i < pool_.size(); ++i) {
      const uint64_t random = hash_of(seed_, kPool, i);
      const bool jump = i == 0 || random % 8 == 0;
      pool_[i] = jump ? below(mix(random), vocabulary) : successor[static_cast<size_t>(pool_[i - 1])];
    }
  }

  int64_t size() const override { return size_; }
  int64_t num_held_out() const override { return num_held_out_; }

  Batch fetch(const std::vector<Draw>& draws, bool pinned) const override {
    return token_batch(draws, length_, pinned, [this](const Draw& draw) {
      return window_at(pool_, below(hash_of(seed_, kNoise, draw.index), kPoolValues), length_);
    });
  }

 private:
  int64_t num_held_out_, size_, seed_, length_;
  std::vector<int64_t> pool_;
};

std::unique_ptr<DataSource> make_synthetic(const Options& options, const DataContext& context) {
  const int64_t size = options.at("size").get<int64_t>();
  if (context.sample.kind == specs::SampleShape::Kind::tokens)
    return std::make_unique<SyntheticTokens>(size, context);
  return std::make_unique<SyntheticValues>(size, context);
}

const Registration<DataEntry> registered{"synthetic",
                                         {"synthetic samples for any model, learnable", make_synthetic}};

}  // namespace
}  // namespace shardmark::synthetic
