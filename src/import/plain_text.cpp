// Note [Prefixes of launchers]
//
// Launchers, containers and CI put something before each line: "[1,0]<stdout>:" (mpirun --tag-output), " 0: "
// (srun -l), "[0] " (mpiexec -prepend-rank), "[pod/launcher/mpi] " (kubectl), a time, or several of these.
// There are too many to list, so they are detected. Each format names texts that its program always prints at
// the left margin (Format::marks). What stands before such a mark is a prefix. If the same prefix stands
// before two lines with marks, it is removed from all lines. Two prefixes are the same if they differ only in
// numbers, in blanks, and in names of days and months.
#include "import/plain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "import/lines.h"

namespace shardmark::imports {
namespace {

constexpr size_t kLongestPrefix = 300;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

// ---- bytes

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<uint32_t, 4> kFirst = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kFirst[static_cast<size_t>(more)] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

std::string from_utf16(std::string_view bytes, bool is_big_endian) {
  const auto unit = [&](size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]),
               second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<uint32_t>(is_big_endian ? first << 8 | second : second << 8 | first);
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  for (size_t at = 0; at + 1 < bytes.size(); at += 2) {
    const uint32_t high = unit(at);
    const uint32_t low = at + 3 < bytes.size() ? unit(at + 2) : 0;
    const bool is_pair = high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000;
    if (is_pair) at += 2;
    const bool is_half = !is_pair && high >= 0xd800 && high < 0xe000;
    append_utf8(is_pair ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) : is_half ? 0xfffd : high, out);
  }
  return out;
}

// UTF-16 text without a byte order mark has a NUL in every second byte, because logs consist of ASCII.
bool has_nul_at_every_second(std::string_view bytes, size_t first) {
  constexpr size_t kLooked = 64;
  if (bytes.size() < 8) return false;
  for (size_t at = 0; at + 1 < std::min(bytes.size(), kLooked); at += 2)
    if (bytes[at + first] != '\0' || bytes[at + 1 - first] == '\0') return false;
  return true;
}

std::string as_utf8(const std::string& bytes) {
  const std::string_view text = bytes;
  if (text.starts_with("\xef\xbb\xbf")) return bytes.substr(3);
  if (text.starts_with("\xff\xfe")) return from_utf16(text.substr(2), false);
  if (text.starts_with("\xfe\xff")) return from_utf16(text.substr(2), true);
  if (has_nul_at_every_second(text, 1)) return from_utf16(text, false);
  if (has_nul_at_every_second(text, 0)) return from_utf16(text, true);
  return bytes;
}

// Windows ends lines with \r\n; old Macs ended them with \r alone.
std::string with_line_feeds(std::string text) {
  if (text.find('\r') == std::string::npos) return text;
  if (text.find('\n') == std::string::npos) {
    std::replace(text.begin(), text.end(), '\r', '\n');
    return text;
  }
  size_t end = 0;
  for (size_t at = 0; at < text.size(); ++at)
    if (text[at] != '\r' || at + 1 == text.size() || text[at + 1] != '\n') text[end++] = text[at];
  text.resize(end);
  return text;
}

// Removes colours and other control sequences such as "\x1b[36m". Source: ECMA-48, section 5.4.
std::string without_colours(std::string text) {
  constexpr std::string_view kControl = "\x1b[";
  if (text.find(kControl) == std::string::npos) return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, kControl.size(), kControl) != 0) {
      out += text[at++];
      continue;
    }
    at += kControl.size();
    while (at < text.size() && text[at] >= 0x20 && text[at] < 0x40) ++at;
    if (at < text.size() && text[at] != '\n') ++at;
  }
  return out;
}

// ---- prefixes

// A shape is a prefix in which each part that may differ between lines is replaced by one of these
// characters.
constexpr char kNumber = 1, kName = 2, kBlanks = 3;
constexpr std::array<std::string_view, 19> kDaysAndMonths = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
                                                             "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
                                                             "Aug", "Sep", "Oct", "Nov", "Dec"};

size_t number_length(std::string_view text) {
  size_t at = 0;
  while (at < text.size() &&
         (is_digit(text[at]) ||
          (at > 0 && at + 1 < text.size() && (text[at] == '.' || text[at] == ',') && is_digit(text[at + 1]))))
    ++at;
  return at;
}

size_t blanks_length(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_blank) - text.begin());
}

size_t name_length(std::string_view text) {
  for (const std::string_view name : kDaysAndMonths)
    if (text.starts_with(name)) return name.size();
  return 0;
}

// The shape of a prefix. It begins with kBlanks, because rank numbers are padded.
std::string shape_of(std::string_view prefix) {
  std::string shape(1, kBlanks);
  for (size_t at = blanks_length(prefix); at < prefix.size();) {
    const std::string_view rest = prefix.substr(at);
    if (const size_t number = number_length(rest); number > 0) {
      shape += kNumber;
      at += number;
    } else if (const size_t blanks = blanks_length(rest); blanks > 0) {
      shape += kBlanks;
      at += blanks;
    } else if (const size_t name = name_length(rest); name > 0) {
      shape += kName;
      at += name;
    } else {
      shape += prefix[at++];
    }
  }
  return shape;
}

// The length of the prefix of this shape with which the line begins; 0 if it does not.
size_t prefix_length(std::string_view line, const std::string& shape) {
  size_t at = 0;
  for (const char c : shape) {
    const std::string_view rest = line.substr(at);
    if (c == kBlanks) {
      at += blanks_length(rest);
      continue;
    }
    const size_t length = c == kNumber ? number_length(rest)
                          : c == kName ? name_length(rest)
                                       : static_cast<size_t>(rest.starts_with(c));
    if (length == 0) return 0;
    at += length;
  }
  return at;
}

const std::vector<std::string_view>& all_marks() {
  static const std::vector<std::string_view> marks = [] {
    std::vector<std::string_view> all;
    for (const auto& [name, format] : Registry<Format>::instance().entries())
      all.insert(all.end(), format.marks.begin(), format.marks.end());
    return all;
  }();
  return marks;
}

// The position of the first mark in the line; npos if there is none.
size_t mark_in(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos && at <= kLongestPrefix;
       at = line.find('#', at + 1))
    for (const std::string_view mark : all_marks())
      if (line.substr(at).starts_with(mark)) return at;
  return std::string_view::npos;
}

// The shapes that occur before at least two marks, the longest first, so that "[1,0]<stdout>:2024-05-07 " is
// tried before "[1,0]<stdout>:".
std::vector<std::string> shapes_in(const Source& source) {
  std::map<std::string, int64_t> counts;
  for_each_line(source, [&](const Line& line) {
    const size_t mark = mark_in(line.text);
    if (mark != std::string_view::npos && mark > 0) ++counts[shape_of(line.text.substr(0, mark))];
  });
  std::vector<std::string> shapes;
  for (const auto& [shape, count] : counts)
    if (count > 1) shapes.push_back(shape);
  std::sort(shapes.begin(), shapes.end(),
            [](const auto& one, const auto& other) { return one.size() > other.size(); });
  return shapes;
}

// Each line loses at most one prefix: the longest one whose shape fits. Lines without a known prefix stay as
// they are.
void take_prefixes_away(Source& source) {
  const std::vector<std::string> shapes = shapes_in(source);
  if (shapes.empty()) return;
  std::string out;
  out.reserve(source.text.size());
  for_each_line(source, [&](const Line& line) {
    size_t length = 0;
    for (const std::string& shape : shapes)
      if (length = prefix_length(line.text, shape); length > 0) break;
    out += line.text.substr(length);
    if (line.is_whole) out += '\n';
  });
  source.text = std::move(out);
}

}  // namespace

Source plain(const Source& given) {
  Source source{given.name, without_colours(with_line_feeds(as_utf8(given.text)))};
  take_prefixes_away(source);
  return source;
}

std::string met_instead(const Source& source) {
  const std::string_view text = source.text;
  if (text.find_first_not_of(" \t\n") == std::string_view::npos) return "it is empty";
  if (text.starts_with("PK\x03\x04")) return "it is a workbook or an archive: save the sheet as CSV";
  if (text.starts_with("\x1f\x8b")) return "it is compressed: gunzip it first";
  if (text.starts_with("\x89HDF")) return "it is HDF5: give a study to shardmark report";
  std::string met;
  for_each_line(source, [&](const Line& line) {
    const size_t mark = mark_in(line.text);
    if (met.empty() && mark != std::string_view::npos && mark > 0)
      met = fmt::format("line {} begins with {} before {}: take such prefixes away", line.number,
                        quoted_line(std::string(line.text.substr(0, mark))),
                        quoted_line(std::string(line.text.substr(mark))));
  });
  return met;
}

}  // namespace shardmark::imports
