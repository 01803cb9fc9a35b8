#include "analysis/frame/labels.h"

#include <algorithm>

#include "schema/choice.h"
#include "schema/options.h"

namespace shardmark {
namespace {

using Texts = std::vector<std::string>;

// "gpt2(layers=4, width=64)", "layers=4, width=64" without a name.
std::string with_options(const std::string& name, const Texts& options) {
  const std::string all = joined(options);
  if (name.empty() || all.empty()) return name + all;
  return name + "(" + all + ")";
}

// One axis of all things, some of which may lack it.
class LabelAxis {
 public:
  LabelAxis(const std::vector<LabelParts>& things, const std::string& axis) {
    for (const LabelParts& parts : things) {
      const auto found =
          std::find_if(parts.begin(), parts.end(), [&](const LabelPart& part) { return part.axis == axis; });
      by_thing_.push_back(found == parts.end() ? nullptr : &*found);
      if (found != parts.end()) parts_.push_back(&*found);
    }
    const auto is_as_first = [&](const LabelPart* part) { return part->text == parts_.front()->text; };
    // Something that differs from "gpt2(width=64)" by having no width is called "gpt2".
    names_text_ = said() == Said::always || !std::all_of(parts_.begin(), parts_.end(), is_as_first) ||
                  (any_differing_option() && any_without_differing_option());
  }

  std::string name(size_t thing) const {
    const LabelPart* const part = by_thing_[thing];
    return part == nullptr ? "" : with_options(names_text_ ? part->text : "", differing(*part));
  }

  // What all have in common: the text with its options; or of each text, which the names say, its options, as
  // "gpt2: layers=4".
  void add_shared(Texts& texts, Texts& of_names) const {
    if (said() == Said::if_differs) return;
    Texts seen;
    for (const LabelPart* part : parts_) {
      if (part->text.empty() || std::count(seen.begin(), seen.end(), part->text) > 0) continue;
      seen.push_back(part->text);
      Texts options;
      for (const std::string& option : part->options)
        if (is_shared(part->text, option)) options.push_back(option);
      if (!names_text_)
        texts.push_back(with_options(part->text, options));
      else if (!options.empty())
        of_names.push_back(part->text + ": " + joined(options));
    }
  }

 private:
  // What one thing has to say is said.
  Said said() const {
    return (*std::min_element(parts_.begin(), parts_.end(),
                              [](const LabelPart* a, const LabelPart* b) { return a->said < b->said; }))
        ->said;
  }

  bool is_shared(const std::string& text, const std::string& option) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const LabelPart* other) {
      return other->text != text || std::count(other->options.begin(), other->options.end(), option) > 0;
    });
  }

  Texts differing(const LabelPart& part) const {
    Texts options;
    for (const std::string& option : part.options)
      if (!is_shared(part.text, option)) options.push_back(option);
    return options;
  }

  bool any_differing_option() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const LabelPart* part) { return !differing(*part).empty(); });
  }
  bool any_without_differing_option() const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const LabelPart* part) { return differing(*part).empty(); });
  }

  std::vector<const LabelPart*> by_thing_;  // nullptr where it lacks the axis
  std::vector<const LabelPart*> parts_;     // of those that have it
  bool names_text_ = false;
};

// All axes of the things, in an order that agrees with the order in each thing as far as the things agree.
// Each thing is read from its last axis to its first; an axis that is new is put before the one that
// follows it.
Texts axes_of(const std::vector<LabelParts>& things) {
  Texts axes;
  for (const LabelParts& parts : things) {
    auto next = axes.end();
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const auto known = std::find(axes.begin(), axes.end(), part->axis);
      next = known != axes.end() ? known : axes.insert(next, part->axis);
    }
  }
  return axes;
}

}  // namespace

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    if (!text.empty()) all += (all.empty() ? "" : ", ") + text;
  return all;
}

LabelPart choice_part(const std::string& axis, const std::string& text, Said said) {
  const Choice choice = choice_or_name(text);
  LabelPart part{axis, choice.name, {}, said};
  for (const auto& [key, value] : choice.options) {
    const std::string text = to_text(Choice{"", {{key, value}}});  // "(width=64)"
    part.options.push_back(text.substr(1, text.size() - 2));
  }
  return part;
}

Labels labels_of(const std::vector<LabelParts>& things) {
  Labels labels;
  labels.names.resize(things.size());
  Texts shared, of_names;
  for (const std::string& name : axes_of(things)) {
    const LabelAxis axis(things, name);
    for (size_t thing = 0; thing < things.size(); ++thing)
      labels.names[thing] = joined({labels.names[thing], axis.name(thing)});
    axis.add_shared(shared, of_names);
  }
  labels.shared = joined(shared);
  for (const std::string& text : of_names) labels.shared += (labels.shared.empty() ? "" : "; ") + text;
  return labels;
}

LabelParts common_parts(const std::vector<LabelParts>& things) {
  LabelParts common = things.front();
  for (size_t place = 0; place < common.size(); ++place) {
    const auto is_same = [&](const LabelParts& parts) {
      return parts.at(place).text == common[place].text && parts.at(place).options == common[place].options;
    };
    if (std::all_of(things.begin(), things.end(), is_same)) continue;
    common[place].text.clear();
    common[place].options.clear();
  }
  return common;
}

}  // namespace shardmark
