// What things beside each other are called: each by what it differs in from the others, and once for all of
// them what they share. A heading, a row and a legend get their names here.
#pragma once

#include <string>
#include <vector>

namespace shardmark {

// When a part is said.
enum class Said {
  always,      // in every name: a strategy, or the model of a plot
  once,        // in the names where things differ in it, else once for all of them
  if_differs,  // only where things differ in it: defaults, and what stands elsewhere
};

// One part of what tells a thing from others, such as its batch, or its model with the options of that.
struct LabelPart {
  std::string axis;                       // "batch"; the column of tables that holds it
  std::string text;                       // "batch 4 per rank", "gpt2"; "": the thing has none
  std::vector<std::string> options = {};  // of a choice: "width=64"
  Said said = Said::once;
};
// The parts in the order in which people ask for them. A thing without some axis differs in it from no other.
using LabelParts = std::vector<LabelPart>;

// "gpt2(layers=4)" as a part; a text that is no choice is a part without options.
LabelPart choice_part(const std::string& axis, const std::string& text, Said said = Said::once);

struct Labels {
  std::vector<std::string> names;  // of each thing: "batch 8 per rank, width=128"; "" where nothing differs
  // "gpt2(layers=4, heads=4), adamw, 2 ranks"; or "2 ranks; gpt2: layers=4; mlp: width=64" where names say
  // the model: all that are called gpt2 have these options.
  std::string shared;
};
Labels labels_of(const std::vector<LabelParts>& things);

// What several things that share a name have in common: parts in which they differ are empty.
LabelParts common_parts(const std::vector<LabelParts>& things);

// "a, b" of those that are not empty.
std::string joined(const std::vector<std::string>& texts);

}  // namespace shardmark
