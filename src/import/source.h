// What import reads: a file of results of another program, what the user adds to it, and what a format makes
// of both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "schema/record.h"

namespace shardmark::imports {

struct Source {
  std::string name;  // name of the file, for messages
  std::string text;  // formats get the text of plain() (plain_text.h)
};

// Facts about the machine that the user gives; "" and 0 mean not given. A source that contradicts them is
// refused.
struct Given {
  std::string device = {}, transport = {}, link = {}, operation = {};
  int64_t ranks = 0, nodes = 0, ranks_per_node = 0;
};

// The number of ranks: what the source says, or --ranks if that is 0. `where` begins error messages. Throws
// UsageError if neither says it, or if they differ.
int64_t ranks_of(int64_t said, const Given& given, const std::string& where);

struct Measured {
  Record record;       // without transport, repeat and id
  int64_t line = 0;    // line in the file
  int64_t nodes = 0;   // nodes that its ranks ran on; 0: not known
  std::string launch;  // name within the file; "": the file is one launch
};

// What a source says. A member at its default means that the source does not say it.
struct Contents {
  std::string version;                                     // of the program that wrote it
  std::string times;                                       // what its times are: "mean over iterations"
  std::string transport;                                   // what that program always uses
  Options transport_options;                               // keep kinds of times apart
  std::vector<std::string> devices;                        // of each rank; a single one is for all
  std::vector<std::string> rank_nodes;                     // host of each rank
  std::map<std::string, std::string> versions, variables;  // of libraries; of the environment
  std::map<std::string, std::string> facts;                // anything else worth keeping
  std::vector<Measured> measured = {};
  std::vector<std::string> warnings = {};  // for people; begin with the file's name
};

// A larger study would take minutes to read and too much memory to report. Suites have the same limit.
inline constexpr int64_t kMostResults = 100'000;
// Throws UsageError if a source has more results than that.
void require_few(int64_t results, const Source& source);

struct Format {
  std::string description;
  // Texts with a '#' with which lines begin that the program prints at the left margin: Note [Prefixes of
  // launchers].
  std::vector<std::string_view> marks;
  bool (*recognises)(const std::string& text);  // from the content
  // Throws UsageError that begins with the file's name if nothing in it can be used, or if it contradicts
  // itself.
  Contents (*read)(const Source& source, const Given& given);
};

// The one format that recognises the source, with its name. Throws UsageError if none or several do.
const std::pair<const std::string, Format>& format_of(const Source& source);

}  // namespace shardmark::imports
