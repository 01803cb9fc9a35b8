// A table as CSV (RFC 4180): a first line of column names, commas, cells with commas in double quotes. Lines
// that begin with # are comments.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "import/formats/table.h"
#include "import/lines.h"

namespace shardmark::imports {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"' && is_quoted && at + 1 < line.size() && line[at + 1] == '"')
      cells.back() += line[++at];
    else if (c == '"')
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  for (std::string& cell : cells) cell = trimmed(cell);
  return cells;
}

bool is_data(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line[begin] != '#';
}

bool is_csv(const std::string& text) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (is_data(line)) {
      const std::vector<std::string> names = cells_of(line);
      return names.size() > 2 && std::find(names.begin(), names.end(), "ranks") != names.end();
    }
    begin = end + 1;
  }
  return false;
}

Contents read_csv(const Source& source, const Given&) {
  std::vector<std::string> names;
  std::vector<TableRow> rows;
  for_each_line(source, [&](const Line& line) {
    if (!is_data(line.text)) return;
    const std::vector<std::string> cells = cells_of(line.text);
    const std::string where = place(source, line.number);
    if (names.empty()) {
      names = cells;
      return;
    }
    if (cells.size() != names.size())
      throw UsageError(fmt::format("{}{} cells, but {} columns; a cell with a comma needs double quotes",
                                   where, cells.size(), names.size()));
    TableRow row{line.number, {}};
    for (size_t i = 0; i < cells.size(); ++i)
      if (!cells[i].empty()) row.cells.push_back({names[i], cells[i], where});
    if (!row.cells.empty()) rows.push_back(std::move(row));
  });
  if (rows.empty()) throw UsageError(source.name + ": column names, but no row");
  return read_table(rows);
}

const Registration<Format> registered{
    "csv",
    {"a table of training results as CSV: ranks,model,strategy,batch_size,step_s ...", is_csv, read_csv}};

}  // namespace
}  // namespace shardmark::imports
