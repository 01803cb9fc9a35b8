// Reads rows of named cells into records, and checks that times, rates and batch sizes agree with each other.
#include "import/formats/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "import/collective_record.h"
#include "plan/axis_values.h"
#include "specs/model_table.h"

namespace shardmark::imports {
namespace {

// Tolerances. A mean is rounded, and rates may come from other steps than medians, but a wrong unit is off by
// a thousand.
constexpr double kRounding = 0.05, kOtherUnit = 100;
constexpr Real kTimeOrRate{0, 1e18, /*is_open=*/true};
constexpr const char* kOthers[] = {"nodes",   "seed",          "launch",       "step_s",
                                   "step_ms", "samples_per_s", "tokens_per_s", "tokens_per_sample"};

const std::vector<std::string>& accepted_columns() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> columns = {"ranks"};
    for (const AxisRow& axis : kTrainingAxes) columns.emplace_back(axis.key);
    columns.insert(columns.end(), std::begin(kOthers), std::end(kOthers));
    return columns;
  }();
  return all;
}

// Whether the text is meant as a choice of this program with options, such as "fsdp(shard=full". Names of
// other programs may look similar: "ddp (torch)", "llama:8b".
bool has_options_of(const AxisRow& axis, const std::string& text) {
  if (!std::holds_alternative<Choices>(axis.accepted) || text.find('=') == std::string::npos) return false;
  const std::vector<std::string>& names = kind_of(axis.key).names;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return text.starts_with(name + "(") || text.starts_with(name + ":");
  });
}

// Checks that a name of another program fits into a study, a terminal and a message.
void require_name(const TableCell& cell, size_t most_bytes = 200) {
  const std::string what = cell.place + cell.column;
  if (printable(cell.text, "") != cell.text)
    throw UsageError(
        fmt::format("{}: {} holds control characters, or bytes that are no UTF-8; save the file as "
                    "UTF-8",
                    what, quoted_line(cell.text)));
  if (cell.text.size() > most_bytes)
    throw UsageError(
        fmt::format("{}: a name of {} bytes; at most {} are kept", what, cell.text.size(), most_bytes));
}

bool is_known_word(const AxisRow& axis, const std::string& text) {
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (std::holds_alternative<Choices>(axis.accepted))
    return has(kind_of(axis.key).names, choice_or_name(text).name);
  return !std::holds_alternative<Words>(axis.accepted) || has(words_of(axis.key), text);
}

class RowReader {
 public:
  explicit RowReader(const TableRow& row) : row_(row) {}

  Measured read(std::set<std::string>& unknown) {
    record_.point = unspecified_point("training", 0);
    for (const AxisRow& axis : kCommonAxes) set(axis, unknown);
    for (const AxisRow& axis : kTrainingAxes) set(axis, unknown);
    for (const char* column : {"ranks", "model", "strategy"}) need(column);
    divide_batch();
    set_times();
    record_.point.seed = whole("seed", values::kSeed);
    record_.measures.verified = "unverified: imported";
    const TableCell* launch = find("launch");
    if (launch != nullptr) require_name(*launch);
    return {std::move(record_), row_.line, whole("nodes", values::kNodes),
            launch == nullptr ? "" : launch->text};
  }

 private:
  const TableCell* find(std::string_view column) const {
    for (const TableCell& cell : row_.cells)
      if (cell.column == column) return &cell;
    return nullptr;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw UsageError(row_.cells.front().place + message);
  }
  void need(const char* column) const {
    if (find(column) == nullptr) fail(fmt::format("no value in column '{}'", column));
  }

  template <class Kind, class Value = decltype(std::declval<Kind>().parse(""))>
  Value whole(const char* column, const Kind& kind, Value otherwise = {}) const {
    const TableCell* cell = find(column);
    if (cell == nullptr) return otherwise;
    try {
      return kind.parse(cell->text);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}{}: {}", cell->place, column, error.what()));
    }
  }
  double number(const char* column) const { return whole(column, kTimeOrRate, Measures::kNone); }

  // A value that this program knows is read and checked as in a suite. Any other name is kept as it is
  // written, and reported once for the whole table. But a text that begins like a choice of this program
  // must parse as one, so that a typing error in its options is not taken for a name.
  void set(const AxisRow& axis, std::set<std::string>& unknown) {
    const TableCell* cell = find(axis.key);
    if (cell == nullptr) return;
    if (is_known_word(axis, cell->text))
      return set_value(axis, values_from_flag(axis, {cell->text}, cell->place + axis.key).front(),
                       record_.point);
    require_name(*cell);
    if (has_options_of(axis, cell->text)) read_choice(*cell);  // throws if it does not parse
    unknown.insert(fmt::format("{} {}", axis.key, quoted_line(cell->text)));
    if (std::holds_alternative<Choices>(axis.accepted))
      set_value(axis, as_value(axis, choice_or_name(cell->text)), record_.point);
    else
      set_value(axis, cell->text, record_.point);
  }

  static void read_choice(const TableCell& cell) {
    try {
      choice_from_text(cell.text);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}{}: {}", cell.place, cell.column, error.what()));
    }
  }

  // A global batch is stored as the batch of a rank and micro-batch, with scaling `strong`, as in a suite.
  void divide_batch() {
    TrainingPoint& t = record_.point.training;
    const TableCell* global = find("global_batch");
    if ((global == nullptr) == (find("batch_size") == nullptr))
      fail(
          "give one of the columns batch_size (samples of a rank and micro-batch) and global_batch (of all "
          "ranks)");
    if (record_.point.data_ranks() < 1)
      fail(fmt::format("{} ranks are no whole number of copies of {}", record_.point.ranks,
                       record_.point.ranks_per_copy()));
    if (global == nullptr) return;
    const int64_t parts = record_.point.data_ranks() * t.accumulation;
    if (t.batch_size % parts != 0)
      fail(fmt::format(
          "a global batch of {} is no whole number of samples for each of {} ranks and micro-batches",
          t.batch_size, parts));
    t.batch_size /= parts;
    t.scaling = "strong";
  }

  double tokens_per_sample() const {
    const double said = number("tokens_per_sample");
    const Choice& model = record_.point.training.model;
    const auto& known = Registry<specs::ModelSpec>::instance();
    if (!known.contains(model.name)) return said;
    const auto tokens =
        static_cast<double>(known.get(model.name, "model").table(model.options).sample.tokens());
    if (tokens > 0 && std::isfinite(said) && said != tokens)
      fail(fmt::format("tokens_per_sample {} contradicts the model, whose sequences have {}", said, tokens));
    return tokens > 0 ? tokens : said;
  }

  void require_equal(double one, double other, const char* what) const {
    if (std::isfinite(one) && std::isfinite(other) && std::abs(one / other - 1) > kRounding)
      fail(fmt::format("{}: {:.6g} and {:.6g} contradict each other", what, one, other));
  }

  // NaN stands for a number that the row does not give. Numbers that are given must agree with those that
  // follow from others. Then the missing ones are computed: the samples per second from the step or from the
  // tokens per second, and all others from the samples per second.
  void set_times() {
    Measures& m = record_.measures;
    if (find("step_s") != nullptr && find("step_ms") != nullptr)
      fail("step_s and step_ms are one time: give one of them");
    const auto batch = static_cast<double>(record_.point.global_batch());
    const double tokens = tokens_per_sample(), in_ms = number("step_ms");
    m.step_s = std::isfinite(in_ms) ? in_ms / 1e3 : number("step_s");
    m.samples_per_s = number("samples_per_s");
    m.tokens_per_s = number("tokens_per_s");
    require_equal(m.samples_per_s, batch / m.step_s, "samples/s, and the batch / the step");
    require_equal(m.tokens_per_s, tokens * batch / m.step_s,
                  "tokens/s, and the tokens of the batch / the step");
    require_equal(m.tokens_per_s, tokens * m.samples_per_s, "tokens/s, and samples/s x tokens of a sample");
    if (std::isnan(m.samples_per_s))
      m.samples_per_s = std::isfinite(m.step_s) ? batch / m.step_s : m.tokens_per_s / tokens;
    if (std::isnan(m.samples_per_s))
      fail(std::isfinite(m.tokens_per_s)
               ? "tokens_per_s of a model that this program does not know needs a column tokens_per_sample"
               : "no time and no rate: give a value in step_s, step_ms, samples_per_s or tokens_per_s");
    if (std::isnan(m.step_s)) m.step_s = batch / m.samples_per_s;
    if (std::isnan(m.tokens_per_s)) m.tokens_per_s = tokens * m.samples_per_s;
  }

  const TableRow& row_;
  Record record_;
};

void require_columns(const std::vector<TableRow>& rows) {
  const std::vector<std::string>& accepted = accepted_columns();
  for (const TableRow& row : rows) {
    std::set<std::string> seen;
    for (const TableCell& cell : row.cells) {
      if (std::find(accepted.begin(), accepted.end(), cell.column) == accepted.end())
        throw UsageError(fmt::format("{}unknown column {}; {}", cell.place, quoted_line(cell.column),
                                     accepted_words(cell.column, accepted)));
      if (!seen.insert(cell.column).second)
        throw UsageError(fmt::format("{}column {} comes twice", cell.place, quoted_line(cell.column)));
    }
  }
}

// If launches of one configuration differ a hundredfold, they are in different units.
void require_one_unit(const std::vector<Measured>& measured, const std::vector<TableRow>& rows) {
  std::map<std::string, size_t> fastest;
  for (size_t i = 0; i < measured.size(); ++i) {
    const auto [found, is_new] = fastest.try_emplace(point_id(measured[i].record.point), i);
    const double one = measured[found->second].record.measures.step_s,
                 other = measured[i].record.measures.step_s;
    if (std::max(one / other, other / one) > kOtherUnit)
      throw UsageError(fmt::format(
          "{}a step of {:.6g} s, of {:.6g} s in line {} of the same setting: are they of one unit?",
          rows[i].cells.front().place, other, one, rows[found->second].line));
  }
}

}  // namespace

std::string column_of(std::string_view heading) {
  std::string column(heading);
  for (char& c : column)
    c = c == ' ' || c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return is_column(column) ? column : std::string(heading);
}

bool is_column(std::string_view heading) {
  const std::vector<std::string>& accepted = accepted_columns();
  return std::find(accepted.begin(), accepted.end(), heading) != accepted.end();
}

bool is_measured_column(const std::string& column) {
  return column == "step_s" || column == "step_ms" || column == "samples_per_s" || column == "tokens_per_s" ||
         column == "tokens_per_sample";
}

Contents read_table(const std::vector<TableRow>& rows) {
  Contents said;
  said.times = "as the table says";
  std::set<std::string> unknown;
  require_columns(rows);
  for (const TableRow& row : rows) said.measured.push_back(RowReader(row).read(unknown));
  require_one_unit(said.measured, rows);
  constexpr size_t kMostNamed = 20;
  std::string named_more;
  if (unknown.size() > kMostNamed) {
    const size_t more = unknown.size() - kMostNamed;
    unknown.erase(std::next(unknown.begin(), kMostNamed), unknown.end());
    named_more = fmt::format(" and {} more", more);
  }
  if (!unknown.empty())
    said.warnings.push_back(fmt::format("{}kept as written, nothing follows from them by formula: {}{}",
                                        rows.front().cells.front().place, fmt::join(unknown, ", "),
                                        named_more));
  return said;
}

}  // namespace shardmark::imports
