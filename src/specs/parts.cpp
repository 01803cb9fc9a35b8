// Shares become whole elements by the largest-remainder method (Hamilton), so that the counts add up exactly.
// With zipf, receiver j gets a share proportional to 1 / j^exponent. Why loads are uneven: Fedus et al., JMLR
// 23, 2022, section 2.2. nccl-tests' alltoallv and Megatron-LM's imbalanced workloads use such shares.
#include "specs/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/glob.h"
#include "base/text.h"
#include "specs/tokens.h"

namespace shardmark::specs {
namespace {

constexpr double kMostCount = 1e15;

std::vector<double> shares_of(const Choice& parts, int64_t ranks) {
  std::vector<double> shares(static_cast<size_t>(ranks), 1.0 / static_cast<double>(ranks));
  if (parts.name == "hot" && ranks > 1) {
    const double hot = parts.options.at("share").get<double>();
    std::fill(shares.begin(), shares.end(), (1 - hot) / static_cast<double>(ranks - 1));
    shares.front() = hot;
  }
  if (parts.name == "zipf")
    for (size_t j = 0; j < shares.size(); ++j)
      shares[j] = std::pow(static_cast<double>(j + 1), -parts.options.at("exponent").get<double>());
  return shares;
}

// Reads a file of counts: rows are senders, columns receivers. A single row holds for every sender.
std::vector<std::vector<double>> read_counts(const std::string& pattern, int64_t ranks,
                                             const std::string& folder) {
  const std::vector<std::string> found = glob_near(folder, pattern);
  if (found.empty())
    throw UsageError(fmt::format("parts counts: there is no file {}; its rows are what each rank sends",
                                 quoted_line(pattern)));
  if (found.size() > 1)
    throw UsageError(
        fmt::format("parts counts: {} files match {}; name one of them", found.size(), quoted_line(pattern)));
  const std::string& path = found.front();
  std::ifstream file(path);
  std::vector<std::vector<double>> rows;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    // A spreadsheet's UTF-8 begins with a byte order mark.
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
    line = line.substr(0, line.find('#'));
    // If semicolons separate the columns, a comma is the decimal point.
    std::replace(line.begin(), line.end(), line.find(';') == std::string::npos ? ',' : ';', ' ');
    std::istringstream words(line);
    std::vector<double> row;
    for (std::string word; words >> word;) {
      size_t used = 0;
      double count = -1;
      try {
        count = std::stod(word, &used);
      } catch (const std::exception&) {  // not a number
      }
      if (used != word.size() || !(count >= 0 && count <= kMostCount))
        throw UsageError(
            fmt::format("{}:{}: expected a count from 0, got {}", path, number, quoted_line(word)));
      row.push_back(count);
    }
    if (row.empty()) continue;
    if (std::ssize(row) != ranks)
      throw UsageError(fmt::format("{}:{}: {}, for {}; expected one for each receiver", path, number,
                                   counted(std::ssize(row), "count"), counted(ranks, "rank")));
    rows.push_back(std::move(row));
  }
  if (std::ssize(rows) != ranks && rows.size() != 1)
    throw UsageError(fmt::format("{}: {} of counts, for {}; expected one for each sender, or one for all",
                                 path, counted(std::ssize(rows), "row"), counted(ranks, "rank")));
  return rows;
}

}  // namespace

std::vector<int64_t> shared_out(int64_t elements, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> counts(shares.size());
  std::vector<double> remainders(shares.size());
  int64_t left = elements;
  for (size_t j = 0; j < shares.size(); ++j) {
    // Every receiver gets its share rounded down. What is left, less than one element for each receiver,
    // goes to the receivers with the largest remainders; of equal ones the first is served first (stable
    // sort).
    const double exact = sum == 0 ? 0 : static_cast<double>(elements) * shares[j] / sum;
    counts[j] = static_cast<int64_t>(exact);
    remainders[j] = exact - static_cast<double>(counts[j]);
    left -= counts[j];
  }
  if (sum == 0) return counts;
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++counts[order[i]];
  return counts;
}

const std::map<std::string, PartsSpec>& parts_specs() {
  static const std::map<std::string, PartsSpec> table = {
      {"equal", {"every receiver gets as much"}},
      {"hot",
       {"rank 0 gets a share of all, the others share the rest",
        {{"share", OptionType::number, 0.5, "of what each rank sends", {}, 0, 1}}}},
      {"zipf",
       {"rank j gets a share like 1 / (j + 1)^exponent",
        {{"exponent", OptionType::number, 1.0, "0: equal", {}, 0, 10}}}},
      {"counts",
       {"shares from a file: a row for each sender, or one for all, of a count for each receiver",
        {{"file", OptionType::text, {}, "from the working directory, or else from the suite's folder"}}}},
      {"experts",
       {"of dispatch and combine: the tokens of a rank go to the ranks that have their experts",
        token_exchange_options()}}};
  return table;
}

Parts::Parts(Rows rows)
    : ranks_(std::ssize(rows.front())), rows_(std::move(rows)), received_(static_cast<size_t>(ranks_)) {
  ENSURE(std::ssize(rows_) == ranks_ || rows_.size() == 1, "parts between every two ranks");
  if (std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row == rows_.front(); }))
    rows_.resize(1);
  // With one row for all, a receiver gets the same from each of the ranks.
  const int64_t senders = ranks_ / std::ssize(rows_);  // per row
  for (const std::vector<int64_t>& row : rows_) {
    ENSURE(std::ssize(row) == ranks_, "parts between every two ranks");
    for (size_t receiver = 0; receiver < row.size(); ++receiver) {
      received_[receiver] += senders * row[receiver];
      longest_ = std::max(longest_, row[receiver]);
    }
    sent_.push_back(std::accumulate(row.begin(), row.end(), int64_t{0}));
  }
  sent_.resize(static_cast<size_t>(ranks_), sent_.front());
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    // A rank's own part is copied within the rank: it belongs to what the rank holds, but not to what it
    // exchanges.
    const int64_t larger = std::max(sent_by(rank), received_by(rank));
    busiest_ = std::max(busiest_, larger);
    busiest_with_others_ = std::max(busiest_with_others_, larger - between(rank, rank));
  }
}

double Parts::moved() const {
  int64_t moved = std::accumulate(sent_.begin(), sent_.end(), int64_t{0});
  for (int64_t rank = 0; rank < ranks_; ++rank) moved -= between(rank, rank);
  return static_cast<double>(moved) / static_cast<double>(ranks_);
}

Parts Parts::reversed() const {
  Rows rows(static_cast<size_t>(ranks_), std::vector<int64_t>(static_cast<size_t>(ranks_)));
  for (int64_t sender = 0; sender < ranks_; ++sender)
    for (int64_t receiver = 0; receiver < ranks_; ++receiver)
      rows[static_cast<size_t>(receiver)][static_cast<size_t>(sender)] = between(sender, receiver);
  return Parts(std::move(rows));
}

int64_t counted_elements(const CollectiveRow& row, const Choice& parts, int64_t ranks, int64_t elements) {
  if (row.moves_tokens) {
    const int64_t width = TokenExchange(parts).width;
    return elements / width * width;
  }
  return elements / (row.is_cut() ? ranks : 1);
}

Parts share_out(const Choice& parts, int64_t ranks, int64_t elements, const std::string& folder) {
  if (parts.name == "experts") {
    const TokenExchange exchange(parts);
    if (const std::string why = exchange_impossible(exchange, ranks, elements); !why.empty())
      throw UsageError(why);
    std::vector<int64_t> sent = rows_to_ranks(exchange, ranks, elements / exchange.width).count;
    for (int64_t& of_rank : sent) of_rank *= exchange.width;
    return Parts(Parts::Rows{std::move(sent)});
  }
  if (parts.name != "counts") return Parts(Parts::Rows{shared_out(elements, shares_of(parts, ranks))});
  const std::vector<std::vector<double>> shares =
      read_counts(parts.options.at("file").get<std::string>(), ranks, folder);
  std::vector<double> sums;
  for (const auto& row : shares) sums.push_back(std::accumulate(row.begin(), row.end(), 0.0));
  // The sender with the largest sum sends all `elements`, and the others less in proportion to their sums.
  const double most = *std::max_element(sums.begin(), sums.end());
  if (most == 0) throw UsageError("parts counts: every count is 0, so nothing would be sent");
  Parts::Rows rows;
  for (size_t i = 0; i < shares.size(); ++i)
    rows.push_back(shared_out(std::llround(static_cast<double>(elements) * sums[i] / most), shares[i]));
  return Parts(std::move(rows));
}

}  // namespace shardmark::specs
