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
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stats.h"
#include "base/units.h"
#include "device/device.h"
#include "device/meter.h"
#include "schema/file.h"

namespace shardmark::machine {
namespace {

constexpr double kTimedS = 0.5;  // of the product, of the copies and of the files, at least
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

// A hash of all values in their order. The products are whole numbers that the type holds exactly, so every
// healthy device gets the same values, in whatever order it adds. A value that is not finite counts as a
// number that no correct product can have. The result is above 0, because 0 stands for a device that
// contradicts itself.
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

constexpr int64_t kPart = 1 << 20;  // bytes of a file that are written at once
using PartOfFile = std::vector<uint64_t>;

// The content of a part, which differs from that of all others.
void fill(PartOfFile& part, int64_t number) {
  std::fill(part.begin(), part.end(), mix(static_cast<uint64_t>(number)));
}

// Moves all bytes of a part by read or write. Returns false on an error or at the end of the file (errno 0).
template <class Move>
bool moves_all(const Move& move, char* data) {
  errno = 0;
  for (int64_t done = 0; done < kPart;) {
    const ssize_t moved = move(data + done, static_cast<size_t>(kPart - done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += moved;
  }
  return true;
}

// Bytes that a test may take on this device.
int64_t room_for_test(at::Device device, int64_t most) {
  const int64_t limit = meter::limit() > 0 ? meter::limit() : device_memory_bytes(device);
  const int64_t free = device_memory_bytes(device) - device_used_bytes(device);
  return std::min({most, limit / 8, free / 4});
}

int64_t size_of_product(at::Device device) {
  constexpr int64_t kBytes = int64_t{1} << 29;  // of four matrices of 8192 x 8192 in bf16
  if (!device.is_cuda()) return 512;
  return room_for_test(device, kBytes) == kBytes ? 8192 : 2048;
}

// On rank 0, the values of a test by rank.
using Values = std::vector<double>;

class Tests {
 public:
  Tests(const HostGroup& world, const NodeTestOptions& options) : world_(world), options_(options) {}

  NodeTests run() {
    compute();
    store();
    exchange();
    return std::move(tests_);
  }

 private:
  void begin(const char* what) const { meet(world_, options_.heartbeat, what); }

  void keep(std::string_view key, double own) {
    Values all = world_.gather(Values{own});
    if (world_.rank() == 0) tests_.by_rank[std::string(key)] = std::move(all);
  }

  // Runs what a rank does alone. An error is the result of this rank, and the others go on.
  template <class Test>
  void alone(const char* what, const Test& test) {
    try {
      test();
    } catch (const std::exception& error) {
      trouble_ =
          fmt::format("{} failed: {}; look at this device and its memory", what, first_line(error.what()));
    }
  }

  // Keeps the trouble of all ranks. Returns whether there was any, the same on all ranks.
  bool keep_troubles() {
    const std::vector<std::string> all = world_.gather(std::exchange(trouble_, ""));
    bool any = false;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].empty()) continue;
      tests_.found.push_back({"error", {static_cast<int64_t>(rank)}, all[rank]});
      any = true;
    }
    return world_.broadcast(static_cast<int64_t>(any), 0) != 0;
  }

  void compute() {
    ProductTest product;
    double rate = NAN;
    begin("a matrix product on every rank");
    // All ranks multiply matrices of one size, so the rank with the least memory decides.
    const int64_t size = -world_.max(-size_of_product(options_.device));
    alone("a matrix product", [&] { product = multiply(options_.device, size); });
    begin("copies of memory on every rank");
    alone("copying memory", [&] { rate = copy_rate(options_.device); });
    empty_caches(options_.device);
    keep(node_tests::kProductS, product.median_s);
    keep(node_tests::kCopied, rate);
    // A checksum has more bits than a double holds, so its halves travel.
    const Values halves = world_.gather(Values{static_cast<double>(product.checksum >> 32),
                                               static_cast<double>(product.checksum & 0xffffffff)});
    has_computed_ = !keep_troubles();
    if (world_.rank() != 0 || !has_computed_) return;
    std::vector<int64_t> checksums;
    for (size_t i = 0; i < halves.size(); i += 2)
      checksums.push_back(static_cast<int64_t>(halves[i]) << 32 | static_cast<int64_t>(halves[i + 1]));
    Values wrong = wrong_products(checksums);
    if (std::any_of(wrong.begin(), wrong.end(), [](double x) { return std::isnan(x); }))
      tests_.notes.emplace_back(
          "ranks returned different results for the same matrix product, and no result is that of most");
    tests_.by_rank[std::string(node_tests::kWrongProduct)] = std::move(wrong);
  }

  // What a rank reaches with its partners: the upper quartile, or of few partners the best, because a partner
  // may be slow itself. One of several possible partners tells nothing of either.
  static double reached(const Values& speeds, int num_members) {
    if (speeds.empty() || (speeds.size() == 1 && num_members > 2)) return NAN;
    return quantile(speeds, speeds.size() < 4 ? 1 : 0.75);
  }

  void exchange() {
    if (!has_computed_) {
      if (world_.rank() == 0)
        tests_.notes.emplace_back("messages were not tested, because a rank could not compute");
      return;
    }
    const doctor::PairTest test = measure_pairs(world_, options_);
    if (world_.rank() != 0) return;
    const auto add = [&](const doctor::Phase& phase, const char* what, std::string_view bandwidth,
                         std::string_view latency) {
      if (phase.num_rounds == 0) return;
      const auto num_done = static_cast<int>(phase.plan.rounds.size());
      if (num_done < phase.num_rounds)
        tests_.notes.push_back(
            fmt::format("of {} rounds of pairs {}, {} fitted into {}: give accept.pairs more time",
                        phase.num_rounds, what, num_done, format_seconds(options_.budget_s)));
      Values bytes(static_cast<size_t>(world_.size()), NAN), seconds = bytes;
      for (const doctor::GroupSpeeds& group : phase.groups) {
        tests_.damage.insert(tests_.damage.end(), group.damage.begin(), group.damage.end());
        for (size_t i = 0; i < group.ranks.size(); ++i) {
          const auto rank = static_cast<size_t>(group.ranks[i]);
          const auto members = static_cast<int>(group.ranks.size()), member = static_cast<int>(i);
          bytes[rank] = reached(group.bytes.measured_of(member), members);
          seconds[rank] = 1 / reached(group.messages.measured_of(member), members);
        }
      }
      tests_.by_rank[std::string(bandwidth)] = std::move(bytes);
      if (!latency.empty()) tests_.by_rank[std::string(latency)] = std::move(seconds);
    };
    add(test.in_nodes, "in nodes", node_tests::kInNode, "");
    add(test.across, "of nodes", node_tests::kBetweenNodes, node_tests::kMessageS);
  }

  void store() {
    const bool is_first = world_.first_rank_on_node() == world_.rank();
    begin("a file of every node");
    StorageTest own;
    int64_t part = 0;
    if (is_first) {
      std::error_code none;
      std::string folder = options_.folder;
      if (folder.empty()) folder = std::filesystem::temp_directory_path(none).string();
      own = test_storage(folder.empty() ? "/tmp" : folder, options_.storage_bytes, [&] {
        if (options_.heartbeat != nullptr) options_.heartbeat->block("a file of every node", part++);
      });
    }
    trouble_ = own.trouble;
    keep(node_tests::kWritten, own.write_rate);
    keep(node_tests::kRead, own.read_rate);
    keep_troubles();
  }

  const HostGroup& world_;
  const NodeTestOptions& options_;
  NodeTests tests_;
  std::string trouble_;  // of this rank
  bool has_computed_ = false;
};

}  // namespace

NodeTests test_nodes(const HostGroup& world, const NodeTestOptions& options) {
  return Tests(world, options).run();
}

// The checksum is 0 if the last repetition has another result than the first one: then the device
// contradicts itself, and need not be compared with others.
ProductTest multiply(at::Device device, int64_t n) {
  const at::Tensor a = entries(n, 1, device), b = entries(n, 2, device);
  const at::Tensor first = at::mm(a, b);  // libraries load, and choose a kernel
  at::Tensor product = at::empty_like(first);
  const std::vector<double> seconds = times_of(device, [&] { at::mm_out(product, a, b); });
  return {median(seconds), product.equal(first) ? checksum_of(first) : 0};
}

// The right checksum is that of more than half of the ranks, or the only one that there is. A rank that
// contradicts itself (0) is wrong in any case. If no checksum is the right one by this rule, the result of
// all other ranks is NaN.
std::vector<double> wrong_products(const std::vector<int64_t>& checksums) {
  std::map<int64_t, size_t> seen;
  for (const int64_t one : checksums) ++seen[one];
  seen.erase(0);
  const auto most = std::max_element(seen.begin(), seen.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool has_majority = most != seen.end() && (seen.size() == 1 || 2 * most->second > checksums.size());
  std::vector<double> wrong;
  for (const int64_t one : checksums)
    wrong.push_back(one == 0 ? 1 : !has_majority ? NAN : one == most->first ? 0 : 1);
  return wrong;
}

double copy_rate(at::Device device) {
  const int64_t bytes = room_for_test(device, device.is_cuda() ? int64_t{1} << 30 : int64_t{1} << 26) / 2;
  const at::Tensor from = at::ones({bytes}, at::TensorOptions(device).dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  to.copy_(from);
  const std::vector<double> seconds = times_of(device, [&] { to.copy_(from); });
  return 2 * static_cast<double>(bytes) / median(seconds);
}

StorageTest test_storage(const std::string& folder, int64_t bytes, const std::function<void()>& on_part) {
  std::vector<double> written, read;
  for (const double begin = now_s(); written.empty() || now_s() - begin < kTimedS;) {
    StorageTest one = write_and_read(folder, bytes, on_part);
    if (!one.trouble.empty()) return one;
    written.push_back(one.write_rate);
    read.push_back(one.read_rate);
  }
  return {median(std::move(written)), median(std::move(read))};
}

// The time of writing includes fsync, so that it is the disk's and not that of the page cache. Before the
// file is read back, the kernel is asked to drop its pages. Every part has other content, so that parts that
// were swapped are noticed.
StorageTest write_and_read(const std::string& folder, int64_t bytes, const std::function<void()>& on_part) {
  const int64_t num_parts = std::max<int64_t>(1, bytes / kPart);
  PartOfFile part(kPart / sizeof(uint64_t)), right(part.size());
  auto* const data = reinterpret_cast<char*>(part.data());
  std::string name = folder + "/shardmark-storage-XXXXXX";
  const File file(mkstemp(name.data()));
  const auto failed = [&](const char* what) {
    StorageTest result;
    result.trouble = fmt::format(
        "cannot {} a file of {} MiB in {}: {}; make room or mend it, or test another folder: "
        "--set accept.folder=PATH",
        what, num_parts, folder, std::strerror(errno));
    return result;
  };
  if (!file) return failed("make");
  unlink(name.c_str());  // it goes with this process, whatever happens
  const auto rate_since = [&](double begin) {
    return static_cast<double>(num_parts * kPart) / (now_s() - begin);
  };
  StorageTest result;
  double begin = now_s();
  for (int64_t i = 0; i < num_parts; ++i) {
    fill(part, i);
    if (!moves_all([&](char* at, size_t size) { return ::write(file.get(), at, size); }, data))
      return failed("write");
    on_part();
  }
  if (fsync(file.get()) != 0) return failed("write");
  result.write_rate = rate_since(begin);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (lseek(file.get(), 0, SEEK_SET) != 0) return failed("read");
  begin = now_s();
  for (int64_t i = 0; i < num_parts; ++i) {
    const bool came = moves_all([&](char* at, size_t size) { return ::read(file.get(), at, size); }, data);
    if (!came && errno != 0) return failed("read");
    fill(right, i);
    if (!came || part != right) {
      result.read_rate = Measures::kNone;
      result.trouble = fmt::format(
          "other bytes came back from a file in {} than were written to it; look at this disk "
          "and its file system",
          folder);
      return result;
    }
    on_part();
  }
  result.read_rate = rate_since(begin);
  return result;
}

}  // namespace shardmark::machine
