// Benchmarks the preparation of a batch: the draw of the sampler, and the fetch of each data source.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "data/source.h"

namespace shardmark {
namespace {

constexpr int64_t kBatch = 128;
const specs::SampleShape kImage = {specs::SampleShape::Kind::image, {3, 32, 32}, 10};
const specs::SampleShape kTokens = {specs::SampleShape::Kind::tokens, {1024}, 50257};

// Files of the right format. Their contents do not matter, and they are deleted with the program.
class Files {
 public:
  Files() {
    std::filesystem::create_directories(folder_);
    for (int i = 1; i <= 5; ++i) {  // all images are black and labelled 0
      const std::string name = path("data_batch_" + std::to_string(i) + ".bin");
      std::ofstream(name).close();
      std::filesystem::resize_file(name, 10000 * 3073);
    }
    const int32_t count = 1 << 22;
    std::vector<int32_t> content(static_cast<size_t>(256 + count / 2), 0);
    content[0] = 20240520, content[1] = 1, content[2] = count;
    std::ofstream(path("tokens.bin"), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), std::ssize(content) * 4);
    std::ofstream(path("text.txt")) << std::string(size_t{1} << 22, 'x');
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "") const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("shardmark-kernels-" + std::to_string(::getpid()));
};

const Files& files() {
  static const Files instance;
  return instance;
}

void fetch(benchmark::State& state, const Choice& choice, const specs::SampleShape& sample) {
  const auto source = make_source(choice, {sample, at::kFloat, 1});
  const DistributedSampler sampler(source->size(), 1, 0, kBatch, 1, 1);
  int64_t step = 0;
  for (auto _ : state) benchmark::DoNotOptimize(source->fetch(sampler.draw(step++, 0)));
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void synthetic_images(benchmark::State& state) { fetch(state, {"synthetic", {{"size", 4096}}}, kImage); }
void synthetic_tokens(benchmark::State& state) { fetch(state, {"synthetic", {{"size", 4096}}}, kTokens); }
void cifar10(benchmark::State& state) {
  fetch(state, {"cifar10", {{"dir", files().path()}, {"augment", state.range(0) != 0}}}, kImage);
}
void tokens(benchmark::State& state) {
  fetch(state, {"tokens", {{"file", files().path("tokens.bin")}}}, kTokens);
}
void text(benchmark::State& state) { fetch(state, {"text", {{"files", files().path("text.txt")}}}, kTokens); }

BENCHMARK(synthetic_images);
BENCHMARK(synthetic_tokens);
BENCHMARK(cifar10)->ArgName("augment")->Arg(0)->Arg(1);
BENCHMARK(tokens);
BENCHMARK(text);

void sampler_draw(benchmark::State& state) {
  const DistributedSampler sampler(state.range(0), 8, 3, kBatch, 1, 1);
  int64_t step = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.draw(step++, 0));
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(sampler_draw)->ArgName("samples")->Arg(50000)->Arg(1'000'000'000);

}  // namespace
}  // namespace shardmark
