// All nodes run a test at the same time, after a barrier, as they compute and communicate at the same time
// when they train.
#include "doctor/machine/node_tests.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "base/clock.h"
#include "base/hash.h"
#include "base/stats.h"
#include "device/device.h"
#include "schema/file.h"

namespace shardmark::machine {
namespace {

constexpr double kTimedS = 0.5;  // of the product and of the copies, at least
constexpr int kLeastTimes = 7;

// Entries are 1 and -1, an eighth each, and else 0. So the sum of n products has a variance of n/16: beyond
// 256, up to which bf16 holds every whole number, lie less than one in 10^28 of the sums with n = 8192.
at::Tensor entries(int64_t n, uint64_t seed, at::Device device) {
  at::Tensor values = at::empty({n, n}, at::kFloat);
  float* at = values.data_ptr<float>();
  for (int64_t i = 0; i < n * n; ++i) {
    const uint64_t draw = hash_of(seed, i) >> 61;
    at[i] = draw == 0 ? 1.F : draw == 1 ? -1.F : 0.F;
  }
  return values.to(device, device.is_cuda() ? at::kBFloat16 : at::kFloat);
}

int64_t checksum_of(const at::Tensor& values) {
  const at::Tensor host = values.to(at::kCPU, at::kFloat).contiguous();
  const float* at = host.data_ptr<float>();
  uint64_t sum = 0;
  for (int64_t i = 0; i < host.numel(); ++i)
    sum = hash_of(sum, std::isfinite(at[i]) ? std::lround(at[i]) : int64_t{1} << 20);
  return static_cast<int64_t>(sum >> 1) + 1;  // above 0
}

// The seconds of each repetition.
std::vector<double> times_of(at::Device device, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (const double begin = now_s(); std::ssize(seconds) < kLeastTimes || now_s() - begin < kTimedS;) {
    const double start = now_s();
    work();
    synchronize(device);
    seconds.push_back(now_s() - start);
  }
  return seconds;
}

// Writes `bytes` of chunks that all differ, and syncs. Returns false on an error (errno).
bool write_all(int file, std::vector<uint64_t>& chunk, int64_t num_chunks) {
  for (int64_t i = 0; i < num_chunks; ++i) {
    std::fill(chunk.begin(), chunk.end(), mix(static_cast<uint64_t>(i)));
    size_t done = 0;
    const size_t size = chunk.size() * sizeof(uint64_t);
    while (done < size) {
      const ssize_t wrote = ::write(file, reinterpret_cast<const char*>(chunk.data()) + done, size - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return false;
      done += static_cast<size_t>(wrote);
    }
  }
  return ::fsync(file) == 0;
}

// Returns the number of bytes that came back as they were written.
int64_t read_all(int file, std::vector<uint64_t>& chunk, int64_t num_chunks) {
  int64_t right = 0;
  for (int64_t i = 0; i < num_chunks; ++i) {
    size_t done = 0;
    const size_t size = chunk.size() * sizeof(uint64_t);
    while (done < size) {
      const ssize_t got = ::read(file, reinterpret_cast<char*>(chunk.data()) + done, size - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return right;
      done += static_cast<size_t>(got);
    }
    const uint64_t value = mix(static_cast<uint64_t>(i));
    if (!std::all_of(chunk.begin(), chunk.end(), [&](uint64_t word) { return word == value; })) return right;
    right += static_cast<int64_t>(size);
  }
  return right;
}

// On rank 0, the values of a test by rank.
using Values = std::vector<double>;

class Tests {
 public:
  Tests(const HostGroup& world, const NodeTestOptions& options) : world_(world), options_(options) {}

  NodeTests run() {
    compute();
    exchange();
    store();
    return std::move(tests_);
  }

 private:
  void begin(const char* what) const { meet(world_, options_.heartbeat, what); }

  void keep(std::string_view key, double own) {
    Values all = world_.gather(Values{own});
    if (world_.rank() == 0) tests_.by_rank[std::string(key)] = std::move(all);
  }

  void compute() {
    begin("a matrix product on every rank");
    const ProductTest product = multiply(options_.device);
    keep(node_tests::kProductS, product.median_s);
    begin("copies of memory on every rank");
    keep(node_tests::kCopied, copy_rate(options_.device));
    // A checksum has more bits than a double holds, so its halves travel.
    const Values halves = world_.gather(Values{static_cast<double>(product.checksum >> 32),
                                               static_cast<double>(product.checksum & 0xffffffff)});
    if (world_.rank() != 0) return;
    std::map<std::pair<double, double>, int> seen;
    for (size_t i = 0; i < halves.size(); i += 2) ++seen[{halves[i], halves[i + 1]}];
    const auto most = std::max_element(seen.begin(), seen.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    Values& wrong = tests_.by_rank[std::string(node_tests::kWrongProduct)];
    for (size_t i = 0; i < halves.size(); i += 2)
      wrong.push_back(std::pair(halves[i], halves[i + 1]) == most->first ? 0 : 1);
  }

  // What a rank reaches with its partners: the upper quartile, or of few partners the best, because a partner
  // may be slow itself. One of several possible partners tells nothing of either.
  static double reached(const Values& speeds, int num_members) {
    if (speeds.empty() || (speeds.size() == 1 && num_members > 2)) return NAN;
    return quantile(speeds, speeds.size() < 4 ? 1 : 0.75);
  }

  void exchange() {
    const doctor::PairTest test = measure_pairs(world_, options_);
    if (world_.rank() != 0) return;
    Values wrong(static_cast<size_t>(world_.size()), 0);
    const auto add = [&](const doctor::Phase& phase, std::string_view bandwidth, std::string_view latency) {
      if (phase.num_rounds == 0) return;
      Values bytes(wrong.size(), NAN), seconds(wrong.size(), NAN);
      for (const doctor::GroupSpeeds& group : phase.groups)
        for (size_t i = 0; i < group.ranks.size(); ++i) {
          const auto rank = static_cast<size_t>(group.ranks[i]);
          wrong[rank] += static_cast<double>(group.wrong_from[i]);
          const auto members = static_cast<int>(group.ranks.size()), member = static_cast<int>(i);
          bytes[rank] = reached(group.bytes.measured_of(member), members);
          seconds[rank] = 1 / reached(group.messages.measured_of(member), members);
        }
      tests_.by_rank[std::string(bandwidth)] = std::move(bytes);
      if (!latency.empty()) tests_.by_rank[std::string(latency)] = std::move(seconds);
    };
    add(test.in_nodes, node_tests::kInNode, "");
    add(test.across, node_tests::kBetweenNodes, node_tests::kMessageS);
    tests_.by_rank[std::string(node_tests::kWrongSent)] = std::move(wrong);
  }

  void store() {
    if (options_.storage_bytes == 0) return;
    begin("a file of every node");
    StorageTest own;
    std::string folder = options_.folder;
    if (world_.first_rank_on_node() == world_.rank()) {
      std::error_code none;
      if (folder.empty()) folder = std::filesystem::temp_directory_path(none).string();
      own = write_and_read(folder.empty() ? "/tmp" : folder, options_.storage_bytes);
    }
    keep(node_tests::kWritten, own.write_rate);
    keep(node_tests::kRead, own.read_rate);
    const std::vector<std::string> troubles = world_.gather(own.trouble);
    for (size_t rank = 0; rank < troubles.size(); ++rank)
      if (!troubles[rank].empty())
        tests_.found.push_back({"error", {static_cast<int64_t>(rank)}, troubles[rank]});
  }

  const HostGroup& world_;
  const NodeTestOptions& options_;
  NodeTests tests_;
};

}  // namespace

NodeTests test_nodes(const HostGroup& world, const NodeTestOptions& options) {
  return Tests(world, options).run();
}

ProductTest multiply(at::Device device) {
  const int64_t n = device.is_cuda() ? 8192 : 512;
  const at::Tensor a = entries(n, 1, device), b = entries(n, 2, device);
  const at::Tensor first = at::mm(a, b);  // libraries load, and choose a kernel
  at::Tensor product = at::empty_like(first);
  const std::vector<double> seconds = times_of(device, [&] { at::mm_out(product, a, b); });
  return {median(seconds), product.equal(first) ? checksum_of(first) : 0};
}

double copy_rate(at::Device device) {
  const int64_t bytes = device.is_cuda() ? int64_t{1} << 30 : int64_t{1} << 26;
  const at::Tensor from = at::ones({bytes}, at::TensorOptions(device).dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  to.copy_(from);
  const std::vector<double> seconds = times_of(device, [&] { to.copy_(from); });
  return 2 * static_cast<double>(bytes) / median(seconds);
}

StorageTest write_and_read(const std::string& folder, int64_t bytes) {
  constexpr int64_t kChunk = 4 << 20;
  const int64_t num_chunks = std::max<int64_t>(1, bytes / kChunk);
  std::vector<uint64_t> chunk(kChunk / sizeof(uint64_t));
  std::string name = folder + "/shardmark-storage-XXXXXX";
  StorageTest result;
  const File file(mkstemp(name.data()));
  const auto fail = [&](const char* what) {
    result = {};
    result.trouble = fmt::format("cannot {} a file of {} MiB in {}: {}", what, num_chunks * (kChunk >> 20),
                                 folder, std::strerror(errno));
    return result;
  };
  if (!file) return fail("make");
  unlink(name.c_str());  // it goes with this process, whatever happens
  const double written = static_cast<double>(num_chunks * kChunk);
  double begin = now_s();
  if (!write_all(file.get(), chunk, num_chunks)) return fail("write");
  result.write_rate = written / (now_s() - begin);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (lseek(file.get(), 0, SEEK_SET) != 0) return fail("read");
  errno = 0;
  begin = now_s();
  const int64_t right = read_all(file.get(), chunk, num_chunks);
  result.read_rate = written / (now_s() - begin);
  if (right == num_chunks * kChunk) return result;
  if (errno != 0) return fail("read");
  result.trouble = fmt::format("other bytes came back from a file in {} than were written, from byte {} on",
                               folder, right);
  return result;
}

}  // namespace shardmark::machine
