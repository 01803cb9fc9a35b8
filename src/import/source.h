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
  std::string name;  // of the file, for messages
  std::string text;  // formats are given what plain() (plain_text.h) makes of it
};

// Machine facts that the user gives; "" and 0: not given. A source that says otherwise is refused.
struct Given {
  std::string device = {}, transport = {}, link = {}, operation = {};
  int64_t ranks = 0, nodes = 0, ranks_per_node = 0;
};

// As many ranks as the source says, or as --ranks does where that is 0; `where` begins errors. UsageError:
// neither says, or they differ.
int64_t ranks_of(int64_t said, const Given& given, const std::string& where);

struct Measured {
  Record record;       // without transport, repeat and id
  int64_t line = 0;    // of the file
  int64_t nodes = 0;   // that its ranks lay on; 0: not said
  std::string launch;  // of a file that holds several; "": the file is one
};

// What a source says. Members at their defaults: it does not.
struct Contents {
  std::string version;                                     // of the program that wrote it
  std::string times;                                       // what its times are: "mean over iterations"
  std::string transport;                                   // what that program always uses
  Options transport_options;                               // that keep points of two kinds of times apart
  std::vector<std::string> devices;                        // of each rank; a single one is of all
  std::vector<std::string> rank_nodes;                     // host of each rank
  std::map<std::string, std::string> versions, variables;  // of libraries; of the environment
  std::map<std::string, std::string> facts;                // else that is worth keeping
  std::vector<Measured> measured = {};
  std::vector<std::string> warnings = {};  // lines for people, which begin with the file's name
};

// A study of more would take minutes to read and as much memory as a report has; a suite stops there, too.
inline constexpr int64_t kMostResults = 100'000;
// UsageError where a source has more than that.
void require_few(int64_t results, const Source& source);

struct Format {
  std::string description;
  // Beginnings of lines, with a '#', that the program prints at the left margin: Note [Prefixes of
  // launchers].
  std::vector<std::string_view> marks;
  bool (*recognises)(const std::string& text);  // by content
  // UsageError that begins with the file's name: nothing of it can be used, or it contradicts itself.
  Contents (*read)(const Source& source, const Given& given);
};

// The one format that recognises the source, by name. UsageError: none does, or several do.
const std::pair<const std::string, Format>& format_of(const Source& source);

}  // namespace shardmark::imports
