// The kinds of values that command-line flags and keys of suites take. Each kind has one parser and a range.
// parse() throws a UsageError such as "expected a whole number from 1 to 1000, got 'x'". NaN and infinity are
// outside every range.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace shardmark {

struct Whole {
  static constexpr const char* kName = "INT";  // in the help
  int64_t least, most;
  std::string range() const;     // "from 1 to 1000"
  std::string expected() const;  // "a whole number from 1 to 1000"
  int64_t parse(const std::string& text) const;
};

struct Real {
  static constexpr const char* kName = "NUMBER";
  double least, most;
  bool is_open = false;  // `least` itself is out of range
  std::string range() const;
  std::string expected() const;
  double parse(const std::string& text) const;
};

// A time in seconds: "5us", "120ms", "90s", "30m", "2h".
struct Duration {
  static constexpr const char* kName = "TIME";
  double most;
  bool is_open = true;  // 0 is out of range
  std::string range() const;
  std::string expected() const;
  double parse(const std::string& text) const;
};

// A size in bytes: "8", "4KiB", "128MiB", "128M" (2^20, as in nccl-tests), "1GiB", "25MB" (1e6).
struct Bytes {
  static constexpr const char* kName = "SIZE";
  int64_t least, most;
  std::string range() const;
  std::string expected() const;
  int64_t parse(const std::string& text) const;
};

// A bandwidth in bytes per second: "25GB/s".
struct Rate {
  static constexpr const char* kName = "RATE";
  Bytes bytes;
  std::string range() const;
  std::string expected() const;
  double parse(const std::string& text) const;
};

// The time limit of a Slurm job in seconds: "90m", "1.5h", "1d", or in Slurm's own forms: minutes,
// minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]].
struct JobTime {
  static constexpr const char* kName = "TIME";
  double most;
  std::string range() const;
  std::string expected() const;
  double parse(const std::string& text) const;
};

struct Word {
  static constexpr const char* kName = "WORD";
  std::vector<std::string> accepted;
  std::string range() const;     // "auto, cpu, cuda"
  std::string expected() const;  // "one word; accepted: auto, cpu, cuda"
  std::string parse(const std::string& text) const;
};

// The ranges that flags and suites share. The bounds guard against typing errors and are far above any use.
namespace values {

inline constexpr Whole kRanks{1, 1 << 20};
// These limits and the limit on ranks keep the global batch from overflowing.
inline constexpr Whole kBatch{1, 1 << 24}, kAccumulation{1, 1 << 16};
inline constexpr Whole kGlobalBatch{1, 1 << 30};
inline constexpr Whole kSteps{1, 1'000'000'000}, kStepsOrNone{0, kSteps.most};
inline constexpr Whole kRepeats{1, 1000}, kSamples{1, 1000};
inline constexpr Whole kSeed{0, std::numeric_limits<int64_t>::max()};
inline constexpr Whole kThreads{1, 4096}, kLayoutRanks{1, 4096};
inline constexpr Whole kNodes{1, 1 << 16}, kGpusPerNode{0, 64}, kRanksPerNode{1, 1 << 16};
inline constexpr Whole kEveryBlock{1, 10000}, kEveryBlockOrNone{0, kEveryBlock.most};
inline constexpr Real kTimeLimit{0, 1e7, /*is_open=*/true}, kTimeout{0, 1e7};  // seconds
inline constexpr Real kPrecision{0, 1e6, /*is_open=*/true};  // relative width of an interval
inline constexpr Real kNorm{0, 1e30}, kNormAboveZero{0, 1e30, /*is_open=*/true};
inline constexpr Real kPercent{0, 100};
inline constexpr Real kPrice{0, 1e9, /*is_open=*/true};
// For options whose own table states a narrower range.
inline constexpr Real kNumber{-1e30, 1e30};
inline constexpr Duration kDuration{10000 * 3600.}, kStepTime{10000 * 3600.};
inline constexpr Duration kLatency{3600, /*is_open=*/false};
inline constexpr JobTime kJobTime{365 * 86400.};
inline constexpr Bytes kMemory{1 << 20, int64_t{1} << 50};
inline constexpr Bytes kMessage{1, int64_t{1} << 40};
inline constexpr Rate kRate{{1, int64_t{1} << 50}};

}  // namespace values
}  // namespace shardmark
