// Reads the tables of nccl-tests. The header names the columns: `redop` and `root` only for operations that
// have them, `error` (the largest deviation) before 2.13, `#wrong` since. The program's name is printed since
// June 2025, its version since 2.17.4.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/value.h"
#include "import/formats/nccl.h"
#include "import/formats/nccl_ranks.h"
#include "import/lines.h"

namespace shardmark::imports::nccl_text {
namespace {

// Derives the precision of a number from its digits: 103.20 is known to 0.005, 95 to 0.5. With an exponent,
// the precision is that of the digits before it, scaled as the number is.
Printed printed(std::string_view word) {
  const size_t exponent_at = std::min(word.find_first_of("eE"), word.size());
  const size_t point = word.substr(0, exponent_at).find('.');
  double half = 0.5;
  if (point != std::string_view::npos)
    for (size_t i = point + 1; i < exponent_at; ++i) half /= 10;
  const double value = number_in(word);
  const double mantissa = number_in(word.substr(0, exponent_at));
  return {value, mantissa == 0 ? half : half * value / mantissa};
}

class NcclReader {
 public:
  NcclReader(const Source& source, const Given& given) : source_(source), given_(given), damaged_(source) {}

  Contents read() {
    for_each_line(source_, [this](const Line& line) { take(line); });
    if (in_table_) end_cut();
    damaged_.report(said_.warnings);
    return std::move(said_);
  }

 private:
  void take(const Line& line) {
    last_line_ = line.number;
    const std::vector<std::string_view> words = words_in(line.text);
    if (words.empty()) return;
    // Lines that list ranks begin with # like comments, so they are looked for first. A line that is no
    // rank, no comment and no row may name the program, such as the command line in a script's output.
    if (!in_table_ && lists_rank(words))
      take_rank(line, words);
    else if (words.front().starts_with("#"))
      take_comment(line, words);
    else if (in_table_ && (whole_in(words.front()) >= 0 || looks_like_row(words)))
      take_row(line, words);
    else
      note_program(line);
  }

  // Whether the line is a row whose size is damaged or preceded by other text.
  bool looks_like_row(const std::vector<std::string_view>& words) const {
    // Lines of NCCL INFO about channels contain numbers, too, but no type.
    constexpr int64_t kFewest = 4;
    const int64_t numbers = std::count_if(words.begin(), words.end(), is_number);
    return (words.size() == num_cells() && 2 * numbers >= std::ssize(words)) ||
           (numbers >= kFewest && std::any_of(words.begin(), words.end(), is_type));
  }
  static bool is_type(std::string_view word) {
    return word == "float" || word == "half" || word == "double" || word == "bfloat16" ||
           ((word.starts_with("int") || word.starts_with("uint") || word.starts_with("f8") ||
             word.starts_with("fp8")) &&
            word.size() < 10);
  }
  size_t num_cells() const {
    const bool has_stamp = !columns_.empty() && columns_.back() == "timestamp";  // a date and a time
    return columns_.size() + (has_stamp ? 1 : 0);
  }

  void take_comment(const Line& line, const std::vector<std::string_view>& words) {
    const auto is = [&](size_t at, std::string_view word) { return at < words.size() && words[at] == word; };
    const auto after = [&](std::string_view key) -> std::string_view {
      const auto found = std::find(words.begin(), words.end(), key);
      return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
    };
    if (is(1, "nThread")) {
      begin_run(words);
    } else if (is(1, "Blocking") && is(2, "Enabled:")) {
      run_.blocking = fmt::format("{}", fmt::join(words.begin() + 3, words.end(), " "));
    } else if (std::find(words.begin(), words.end(), "busbw") != words.end()) {
      begin_table(line, words);
    } else if (is(1, "Out") && is(2, "of") && is(3, "bounds")) {
      if (!in_table_ && num_cut_ > 0) refuse_mixed(line);
      end_table(whole_in(after(":")), line);
    } else if (is(1, "Avg") && is(2, "bus")) {
      end_table(0, line);
    } else if (is(1, "nccl-tests") && is(2, "version") && words.size() > 3) {
      said_.version = words[3];
      for (const std::string_view word : words)
        if (word.starts_with("nccl-library="))
          said_.versions["nccl"] = nccl_version(whole_in(word.substr(13)));
    } else if (is(1, "Collective") && is(2, "test") && is(3, "starting:") && words.size() > 4) {
      test_ = nccl_test_in(words[4]);
      test_is_said_ = !test_.empty();
    } else if (!is(3, "concluded:")) {
      note_program(line);
    }
  }

  void note_program(const Line& line) {
    if (in_table_) return;
    if (std::string test = nccl_test_in(line.text); !test.empty() && !test_is_said_) test_ = std::move(test);
    constexpr std::string_view kVersion = "NCCL version ";
    const size_t at = line.text.find(kVersion);
    const auto words = at == std::string_view::npos ? std::vector<std::string_view>()
                                                    : words_in(line.text.substr(at + kVersion.size()));
    if (!words.empty()) said_.versions["nccl"] = words.front();
  }

  // Parses "# nThread 1 nGpus 1 ... warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0". The first
  // versions print neither agg nor graph.
  void begin_run(const std::vector<std::string_view>& words) {
    if (in_table_) end_cut();
    run_ = {};
    listed_.clear();
    is_placed_ = false;
    // The number after `key`, whose preceding word is `of` unless that is "".
    const auto number = [&](std::string_view of, std::string_view key) -> int64_t {
      for (size_t i = 1; i + 1 < words.size(); ++i)
        if (words[i] == key &&
            (of.empty() ? words[i - 1] != "warmup" && words[i - 1] != "agg" : words[i - 1] == of))
          return std::max<int64_t>(whole_in(words[i + 1]), 0);
      return 0;
    };
    run_.num_steps = number("", "iters:");
    run_.num_warmup = number("warmup", "iters:");
    run_.aggregated = std::max<int64_t>(number("agg", "iters:"), 1);
    run_.graph = number("", "graph:");
    run_.unaligned = number("", "unalign:");
    constexpr int64_t kMostOfProcess = 1 << 10;
    per_process_ = std::clamp<int64_t>(number("", "nThread"), 1, kMostOfProcess) *
                   std::clamp<int64_t>(number("", "nGpus"), 1, kMostOfProcess);
  }

  void take_rank(const Line& line, const std::vector<std::string_view>& words) {
    if (is_placed_) listed_.clear();  // they belong to another run
    is_placed_ = false;
    listed_.push_back(read_rank(line, words, place(source_, line.number)));
  }

  void begin_table(const Line& line, const std::vector<std::string_view>& words) {
    const bool was_cut = in_table_;
    if (was_cut) end_cut();
    columns_.assign(words.begin() + 1, words.end());
    if (std::find(words.begin(), words.end(), "cputime") != words.end())
      throw UsageError(place(source_, line.number) +
                       "its times are of the CPU alone (-C), which a study cannot hold");
    const std::string where = place(source_, line.number);
    if (was_cut) refuse_mixed(line);
    is_placed_ = true;
    run_.operation = &nccl_operation(test_, given_, where);
    if (std::ssize(listed_) % per_process_ != 0)
      throw UsageError(fmt::format(
          "{}{} ranks are listed, but each process has {} (nThread x nGpus): a line of the log was "
          "lost; leave the file out",
          where, listed_.size(), per_process_));
    NcclPlacement placement = nccl_placement(listed_, given_);
    run_.ranks = ranks_of(std::ssize(placement.hosts), given_, where);
    run_.nodes = placement.nodes;
    run_.shares_devices = placement.shares_devices;
    if (placement.hosts.size() > said_.rank_nodes.size()) {
      said_.rank_nodes = std::move(placement.hosts);
      said_.devices = std::move(placement.devices);
    }
    add_kind(run_, where, said_);
    first_row_ = said_.measured.size();
    in_table_ = true;
  }

  void take_row(const Line& line, const std::vector<std::string_view>& words) {
    if (words.size() != num_cells() || !line.is_whole) return damaged_.add(line, "it is not whole");
    const int64_t bytes = whole_in(words.front());
    if (bytes == 0) return;  // without a message
    if (bytes < 0) return damaged_.add(line, "its size is no whole number of bytes");
    if (bytes > values::kMessage.most) return damaged_.add(line, "no run has such a message");
    NcclResult result;
    size_t places = 0;
    Measures* measures = nullptr;
    // The columns of the time and the rates come twice under the same names: out of place, and in place. The
    // result of each half is added at its number of wrong elements, and columns behind that one go into the
    // stored record. Old versions print the largest deviation there instead, from which no number of wrong
    // elements follows.
    for (size_t at = 0; at < columns_.size(); ++at) {
      const std::string& column = columns_[at];
      if (column == "size") result.bytes = bytes;
      if (column == "type") result.type = words[at];
      if (column == "redop") result.redop = words[at];
      if (column == "root" && whole_in(words[at]) > 0)
        return damaged_.add(line, "a study holds root 0 alone");
      if (column == "time") result.time_us = printed(words[at]);
      if (column == "algbw") result.algbw_gb_s = printed(words[at]);
      if (column == "busbw") result.busbw_gb_s = printed(words[at]);
      if (column == "#wrong" || column == "error") {
        result.in_place = places++ == 1;
        const double wrong = column == "error" ? Measures::kNone : number_in(words[at]);
        result.num_wrong = count_of_wrong(wrong);
        measures = add(result, line);
      }
      if (column == "i_p99" && measures != nullptr) measures->step_p99_s = number_in(words[at]) * 1e-6;
      if (column == "i_cv%" && measures != nullptr) measures->variation = number_in(words[at]) / 100;
    }
  }

  // Returns nullptr if the line is damaged.
  Measures* add(const NcclResult& result, const Line& line) {
    if (const std::string why = damage(result); !why.empty()) {
      damaged_.add(line, why);
      return nullptr;
    }
    require_factor(result, run_, place(source_, line.number));
    said_.measured.push_back({nccl_record(result, run_), line.number, run_.nodes, ""});
    require_few(std::ssize(said_.measured), source_);
    return &said_.measured.back().record.measures;
  }

  // If there is no column of wrong elements, the verdict below the table is for the whole table.
  void end_table(int64_t out_of_bounds, const Line& line) {
    const bool counts = std::find(columns_.begin(), columns_.end(), "#wrong") != columns_.end();
    if (in_table_ && out_of_bounds > 0 && !counts)
      throw UsageError(
          place(source_, line.number) +
          "its verification failed, and the table does not say for which sizes; leave the file out");
    in_table_ = false;
    test_.clear();
    test_is_said_ = false;
  }

  // A run lists its ranks, prints its columns once, and ends its table once. Anything else means that several
  // programs have written to the file.
  [[noreturn]] void refuse_mixed(const Line& line) const {
    throw UsageError(place(source_, line.number) +
                     "two programs wrote into this file at once, so that nobody knows whose these lines are; "
                     "leave it out, or measure again: nccl-tests that are started by mpirun need MPI=1");
  }

  void end_cut() {
    ++num_cut_;
    said_.warnings.push_back(fmt::format("{}ends inside a table: {} results of it are imported",
                                         place(source_, last_line_), said_.measured.size() - first_row_));
    in_table_ = false;
  }

  const Source& source_;
  const Given& given_;
  LeftOut damaged_;
  Contents said_;
  NcclRun run_;
  std::string test_;  // such as "all_reduce"
  // Whether the program itself named the test, and not only a command line.
  bool test_is_said_ = false;
  std::vector<std::string> columns_;
  std::vector<NcclRank> listed_;
  bool in_table_ = false;
  int64_t per_process_ = 1;  // ranks per process
  // Whether a table has begun since the ranks were listed.
  bool is_placed_ = false;
  int64_t num_cut_ = 0;  // tables without an end
  size_t first_row_ = 0;
  int64_t last_line_ = 0;
};

bool is_nccl_text(const std::string& text) {
  return text.find("algbw") != std::string::npos && text.find("(GB/s)") != std::string::npos &&
         !text.starts_with("{");
}

Contents read_nccl_text(const Source& source, const Given& given) { return NcclReader(source, given).read(); }

const Registration<Format> registered{
    "nccl-tests",
    {"tables of nccl-tests and rccl-tests (all_reduce_perf ...)",
     {"# nccl-tests version ", "# Collective test ", "# nThread ", "# Using devices", "#  Rank ", "#   Rank ",
      "#       size ", "# Out of bounds values ", "# Avg bus bandwidth "},
     is_nccl_text,
     read_nccl_text}};

}  // namespace
}  // namespace shardmark::imports::nccl_text
