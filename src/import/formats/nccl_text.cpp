// nccl-tests' tables. Their header says which columns there are: `redop` and `root` of operations that have
// them, `error` (the largest deviation) before 2.13, `#wrong` since. The program's name is printed since June
// 2025, its version since 2.17.4.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "import/formats/nccl.h"
#include "import/lines.h"

namespace shardmark::imports {
namespace {

// Of a number as printed: 103.20 is known to 0.005, 95 to 0.5.
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
    if (words.front().starts_with("#"))
      take_comment(line, words);
    else if (in_table_ && whole_in(words.front()) >= 0)
      take_row(line, words);
    else
      note_program(line);
  }

  void take_comment(const Line& line, const std::vector<std::string_view>& words) {
    const auto is = [&](size_t at, std::string_view word) { return at < words.size() && words[at] == word; };
    const auto after = [&](std::string_view key) -> std::string_view {
      const auto found = std::find(words.begin(), words.end(), key);
      return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
    };
    if (is(1, "nThread")) {
      begin_run(whole_in(after("iters:")), words);
    } else if (is(1, "Rank")) {
      take_device(line, words);
    } else if (std::find(words.begin(), words.end(), "busbw") != words.end()) {
      begin_table(line, words);
    } else if (is(1, "Out") && is(2, "of") && is(3, "bounds")) {
      end_table(whole_in(after(":")), line);
    } else if (is(1, "Avg") && is(2, "bus")) {
      end_table(0, line);
    } else if (is(1, "nccl-tests") && is(2, "version") && words.size() > 3) {
      said_.version = words[3];
      for (const std::string_view word : words)
        if (word.starts_with("nccl-library="))
          said_.versions["nccl"] = nccl_version(whole_in(word.substr(13)));
    } else if (!is(3, "concluded:")) {
      note_program(line);
    }
  }

  void note_program(const Line& line) {
    if (in_table_) return;
    const size_t perf = line.text.find("_perf");
    if (perf != std::string_view::npos) program_ = line.text.substr(0, perf + 5);
    constexpr std::string_view kVersion = "NCCL version ";
    if (const size_t at = line.text.find(kVersion); at != std::string_view::npos)
      said_.versions["nccl"] = words_in(line.text.substr(at + kVersion.size())).front();
  }

  void begin_run(int64_t iterations, const std::vector<std::string_view>& words) {
    if (in_table_) end_cut();
    run_ = {};
    devices_.clear();
    hosts_.clear();
    used_.clear();
    run_.num_steps = std::max<int64_t>(iterations, 0);
    const auto warmup = std::find(words.begin(), words.end(), "warmup");  // "warmup iters: 5 iters: 20"
    if (std::distance(warmup, words.end()) > 4) {
      run_.num_warmup = std::max<int64_t>(whole_in(*(warmup + 2)), 0);
      run_.num_steps = std::max<int64_t>(whole_in(*(warmup + 4)), 0);
    }
  }

  // "#  Rank  0 Group  0 Pid  16 on host device  0 [0000:19:00] NVIDIA H100 80GB HBM3"; before 2022 without
  // the group.
  void take_device(const Line& line, const std::vector<std::string_view>& words) {
    const auto on = std::find(words.begin(), words.end(), "on");
    const auto group = std::find(words.begin(), words.end(), "Group");
    const size_t bracket = line.text.find("] ");
    if (words.end() - on < 4 || bracket == std::string_view::npos)
      return damaged_.add(line, "no device in it");
    if (group + 1 < words.end() && *(group + 1) != "0")
      throw UsageError(place(source_, line.number) +
                       "several groups of ranks ran at once, which a study cannot hold; leave the file out");
    devices_.emplace_back(line.text.substr(bracket + 2));
    hosts_.emplace_back(*(on + 1));
    run_.shares_devices |= !used_.insert(fmt::format("{} {}", *(on + 1), *(on + 3))).second;
  }

  void begin_table(const Line& line, const std::vector<std::string_view>& words) {
    if (in_table_) end_cut();
    columns_.assign(words.begin() + 1, words.end());
    if (std::find(words.begin(), words.end(), "cputime") != words.end())
      throw UsageError(place(source_, line.number) +
                       "its times are of the CPU alone (-C), which a study cannot hold");
    const std::string where = place(source_, line.number);
    run_.operation = &nccl_operation(program_, given_, where);
    run_.ranks = ranks_of(static_cast<int64_t>(hosts_.size()), given_, where);
    run_.nodes = static_cast<int64_t>(std::set(hosts_.begin(), hosts_.end()).size());
    if (hosts_.size() > said_.rank_nodes.size()) {
      said_.rank_nodes = hosts_;
      said_.devices = devices_;
    }
    first_row_ = said_.measured.size();
    in_table_ = true;
  }

  void take_row(const Line& line, const std::vector<std::string_view>& words) {
    const bool has_stamp = !columns_.empty() && columns_.back() == "timestamp";  // a date and a time
    const size_t expected = columns_.size() + (has_stamp ? 1 : 0);
    if (words.size() != expected || !line.is_whole) return damaged_.add(line, "it is not whole");
    if (whole_in(words.front()) == 0) return;  // no message
    NcclResult result;
    size_t places = 0;
    Measures* measures = nullptr;
    for (size_t at = 0; at < columns_.size(); ++at) {
      const std::string& column = columns_[at];
      if (column == "size") result.bytes = whole_in(words[at]);
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

  // Nothing where the line is damaged.
  Measures* add(const NcclResult& result, const Line& line) {
    if (const std::string why = damage(result); !why.empty()) {
      damaged_.add(line, why);
      return nullptr;
    }
    require_factor(result, run_, place(source_, line.number));
    said_.measured.push_back({nccl_record(result, run_), line.number, run_.nodes, ""});
    return &said_.measured.back().record.measures;
  }

  // Where the columns count no wrong elements, the verdict is of the whole table.
  void end_table(int64_t out_of_bounds, const Line& line) {
    const bool counts = std::find(columns_.begin(), columns_.end(), "#wrong") != columns_.end();
    if (in_table_ && out_of_bounds > 0 && !counts)
      throw UsageError(
          place(source_, line.number) +
          "its verification failed, and the table does not say for which sizes; leave the file out");
    in_table_ = false;
    program_.clear();
  }

  void end_cut() {
    said_.warnings.push_back(fmt::format("{}ends inside a table: {} results of it are imported",
                                         place(source_, last_line_), said_.measured.size() - first_row_));
    in_table_ = false;
  }

  const Source& source_;
  const Given& given_;
  LeftOut damaged_;
  Contents said_;
  NcclRun run_;
  std::string program_;
  std::vector<std::string> columns_, devices_, hosts_;
  std::set<std::string> used_;  // hosts with the numbers of their devices
  bool in_table_ = false;
  size_t first_row_ = 0;
  int64_t last_line_ = 0;
};

bool is_nccl_text(const std::string& text) {
  return text.find("algbw") != std::string::npos && text.find("(GB/s)") != std::string::npos &&
         !text.starts_with("{");
}

Contents read_nccl_text(const Source& source, const Given& given) {
  Contents said = NcclReader(source, given).read();
  said.transport = "nccl";
  said.times = kNcclTimes;
  return said;
}

const Registration<Format> registered{
    "nccl-tests",
    {"tables of nccl-tests and rccl-tests (all_reduce_perf ...)", is_nccl_text, read_nccl_text}};

}  // namespace
}  // namespace shardmark::imports
