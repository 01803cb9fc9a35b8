// Short names for choices. Of gpt2(layers=4, width=256) and gpt2(layers=8, width=256) only the layers tell
// them apart: the labels are gpt2(layers=4) and gpt2(layers=8), and the legend says width=256. A single
// choice keeps its whole name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "schema/choice.h"

namespace shardmark {

class Labels {
 public:
  // With defaults, an option that is off its default stays in every label.
  void add(const Choice& choice, const OptionTable& defaults = {});
  // After the last add(). An option stays in the label when choices of that name differ in it.
  std::string label(const Choice& choice) const;
  // "gpt2(width=256, heads=4); sgd(lr=0.1)": what the labels leave out; "" when they leave out nothing.
  std::string legend() const;

 private:
  struct Seen {
    Options first;  // options of the first choice of this name
    std::set<std::string> shown;
  };
  bool is_single() const { return single_ && seen_.size() == 1; }
  std::map<std::string, Seen> seen_;
  bool single_ = true;  // no name came with two sets of options
};

}  // namespace shardmark
