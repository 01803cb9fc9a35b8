// Reads a table as CSV (RFC 4180). The first line has the column names; cells that contain separators are in
// double quotes. Lines that begin with # are comments. Spreadsheets separate with semicolons if their
// decimals have commas, or with tabs. Excel may name the separator in a line "sep=;" before the column names.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "import/formats/table.h"
#include "import/lines.h"

namespace shardmark::imports::csv_file {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Separators between double quotes belong to the cell, and two double quotes there stand for one.
std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"' && is_quoted && at + 1 < line.size() && line[at + 1] == '"')
      cells.back() += line[++at];
    else if (c == '"')
      is_quoted = !is_quoted;
    else if (c == separator && !is_quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  for (std::string& cell : cells) cell = trimmed(cell);
  return cells;
}

bool is_data(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line[begin] != '#' && !line.starts_with("sep=");
}

int64_t columns_in(std::string_view line, char separator) {
  const std::vector<std::string> cells = cells_of(line, separator);
  return std::count_if(cells.begin(), cells.end(),
                       [](const auto& cell) { return is_column(column_of(cell)); });
}

// The separator with which most column names are known; with a tie, the first of these.
char separator_of(std::string_view names) {
  constexpr std::string_view kSeparators = ",;\t|";
  return *std::max_element(kSeparators.begin(), kSeparators.end(), [&](char one, char other) {
    return columns_in(names, one) < columns_in(names, other);
  });
}

// The first line of data decides: it must have three cells or more, of which at least two are column names.
bool is_csv(const std::string& text) {
  constexpr size_t kFewest = 2;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (is_data(line)) {
      const char separator = separator_of(line);
      return static_cast<size_t>(columns_in(line, separator)) >= kFewest &&
             cells_of(line, separator).size() > kFewest;
    }
    begin = end + 1;
  }
  return false;
}

class CsvReader {
 public:
  explicit CsvReader(const Source& source) : source_(source) {}

  Contents read() {
    for_each_line(source_, [this](const Line& line) {
      if (is_data(line.text)) take(line);
    });
    if (rows_.empty()) throw UsageError(source_.name + ": column names, but no row");
    return read_table(rows_);
  }

 private:
  void take(const Line& line) {
    if (std::count(line.text.begin(), line.text.end(), '"') % 2 != 0)
      throw UsageError(place(source_, line.number) + "a double quote that does not end on its line");
    if (names_.empty()) {
      separator_ = separator_of(line.text);
      for (const std::string& cell : cells_of(line.text, separator_)) names_.push_back(column_of(cell));
      return;
    }
    std::vector<std::string> cells = cells_of(line.text, separator_);
    while (cells.size() > names_.size() && cells.back().empty()) cells.pop_back();
    const std::string where = place(source_, line.number);
    if (cells.size() != names_.size())
      throw UsageError(fmt::format("{}{} cells, but {} columns; a cell with a {} needs double quotes", where,
                                   cells.size(), names_.size(), separator_name()));
    TableRow row{line.number, {}};
    for (size_t i = 0; i < cells.size(); ++i)
      if (!cells[i].empty()) row.cells.push_back({names_[i], number_text(names_[i], cells[i], where), where});
    if (row.cells.empty()) return;
    rows_.push_back(std::move(row));
    require_few(std::ssize(rows_), source_);
  }

  // If cells are not separated by commas, "0,35" means 0.35. A table that uses both commas and points is
  // refused, because one of them might separate thousands.
  std::string number_text(const std::string& column, const std::string& cell, const std::string& where) {
    if (separator_ == ',' || !is_measured_column(column)) return cell;
    const size_t mark = cell.find_first_of(",.");
    if (mark == std::string::npos || cell.find_first_of(",.", mark + 1) != std::string::npos) return cell;
    if (decimal_ == 0) decimal_ = cell[mark];
    if (cell[mark] != decimal_)
      throw UsageError(fmt::format(
          "{}{}: '{}' has a {}, numbers above have a {}: which one stands before "
          "decimals? write all with a point",
          where, column, cell, cell[mark] == ',' ? "comma" : "point", decimal_ == ',' ? "comma" : "point"));
    std::string number = cell;
    number[mark] = '.';
    return number;
  }

  const char* separator_name() const {
    return separator_ == ',' ? "comma" : separator_ == ';' ? "semicolon" : separator_ == '|' ? "bar" : "tab";
  }

  const Source& source_;
  char separator_ = ',';
  char decimal_ = 0;  // the mark of the first number that had one
  std::vector<std::string> names_;
  std::vector<TableRow> rows_;
};

Contents read_csv(const Source& source, const Given&) { return CsvReader(source).read(); }

const Registration<Format> registered{
    "csv",
    {"a table of training results as CSV: ranks,model,strategy,batch_size,step_s ...", {}, is_csv, read_csv}};

}  // namespace
}  // namespace shardmark::imports::csv_file
