// Short names for choices. Of gpt2(layers=4, width=256) and gpt2(layers=8, width=256) only the layers tell them apart:
// the labels are gpt2(layers=4) and gpt2(layers=8), and the legend says width=256.
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
  // "gpt2: width=256, heads=4" for every name, in one text; "" when no label leaves anything out.
  std::string legend() const;

 private:
  struct Seen {
    Options first;                // options of the first choice of this name
    std::set<std::string> shown;
  };
  std::map<std::string, Seen> seen_;
};

}  // namespace shardmark
