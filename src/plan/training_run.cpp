// Reads a training run from its YAML file with the parsers of a suite's axes, which here have one value each.
#include "plan/training_run.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "plan/axes.h"
#include "plan/axis_values.h"
#include "plan/choice_axis.h"

namespace shardmark {

static constexpr const char *kTrained = "What trains", *kRate = "Optimizer and learning rate",
                            *kResults = "Results";

const std::vector<Knob> kKnobs = {
    {"--batch-size", kTrained,
     "samples per rank and micro-batch (default: 4, or what keeps the checkpoint's global batch)",
     &TrainingRun::batch_size, values::kBatch},
    {"--global-batch", kTrained, "samples of all ranks in a step, which they share; instead of --batch-size",
     &TrainingRun::global_batch, values::kGlobalBatch},
    {"--steps", kTrained, "steps of the whole run, including those before --resume (default: 100)",
     &TrainingRun::steps, values::kSteps, "steps"},
    {"--epochs", kTrained, "instead of --steps: passes over the samples to train on", &TrainingRun::epochs,
     values::kSteps, "epochs"},
    // Seed of the initial weights and the data.
    {nullptr, kTrained, nullptr, &TrainingRun::seed, values::kSeed, "seed"},
    // Only algorithms that give the same bits in every run.
    {nullptr, kTrained, nullptr, &TrainingRun::deterministic, {}, "deterministic"},
    {"--lr", kRate, "peak learning rate (default: the optimizer's)", &TrainingRun::of_optimizer,
     values::kNumber},
    {"--schedule",
     kRate,
     "constant, \"cosine(end=0.1)\", \"step(every=30, factor=0.1)\"",
     &TrainingRun::schedule,
     {},
     "schedule"},
    // Steps of linear warm-up.
    {nullptr, kRate, nullptr, &TrainingRun::warmup, values::kStepsOrNone, "warmup"},
    // The linear scaling rule: rate x ranks.
    {nullptr, kRate, nullptr, &TrainingRun::scale_lr, {}, "scale_lr"},
    {nullptr, kResults, nullptr, &TrainingRun::log_every, values::kSteps, "log_every"},
    {"--eval-every", kResults, "steps between two evaluations; 0: at the end only", &TrainingRun::eval_every,
     values::kStepsOrNone, "eval_every"},
    // Most batches that each rank evaluates, the first ones held out; 0: no evaluation. Without it: all.
    {nullptr, kResults, nullptr, &TrainingRun::eval_batches, values::kStepsOrNone, "eval_batches"},
    {"-o,--output", kResults, "study to write, such as results/run.h5", &TrainingRun::output},
    {"--checkpoint", kResults, "directory of checkpoints; the last two are kept", &TrainingRun::checkpoint},
    {"--checkpoint-every", kResults, "steps between two checkpoints; 0: at the end only",
     &TrainingRun::checkpoint_every, values::kStepsOrNone},
    {"--resume", kResults,
     "continue from the newest checkpoint, with any strategy and on any number of ranks, and with the study "
     "of -o",
     &TrainingRun::resume},
    {"--weights", kResults,
     "start from the weights in this safetensors file, or in the files of this model.safetensors.index.json; "
     "GPT-2's and Llama's have Hugging Face's names",
     &TrainingRun::weights},
    {"--save-weights", kResults, "safetensors file to write at the end", &TrainingRun::save_weights},
    {"--trace", kResults,
     "directory for traces, for Perfetto or chrome://tracing: three steps of all ranks, instruction by "
     "instruction (steps.json), and three of each rank by operators, GPU kernels and memory (rank-0.json "
     "...)",
     &TrainingRun::trace},
    {"--overwrite", kResults, "with --save-weights and --trace: replace files that are there already",
     &TrainingRun::overwrite},
    {"--memory", "Options",
     "memory limit of a rank, such as 8GiB (default: 0.8 of the node's memory / its ranks, or of the GPU)",
     &TrainingRun::memory_limit, values::kMemory, "memory_limit"},
};

namespace {

// The keys that a file and --set accept. Checkpoints of a run have knobs of their own.
std::vector<std::string> accepted_keys() {
  std::vector<std::string> keys = block_keys("training");
  std::erase_if(keys,
                [](const std::string& key) { return key == "ranks" || key == "sampling" || key == "save"; });
  for (const Knob& knob : kKnobs)
    if (knob.key != nullptr) keys.emplace_back(knob.key);
  return keys;
}

// Returns the only one of `values`, which were read from the node; fails if the node is a list.
template <class Value>
Value single(const YamlNode& node, const std::vector<Value>& values) {
  std::string words = node.key();
  std::replace(words.begin(), words.end(), '_', ' ');
  if (node.is_list() || values.size() != 1) node.fail("a training run has one " + words + ", not a list");
  return values.front();
}

std::map<std::string, AxisValue> axes_in(const YamlMap& map) {
  std::map<std::string, AxisValue> axes;
  for_each_axis([&](const AxisRow& axis) {
    if (const YamlNode* const found = map.find(axis.key))
      axes[axis.key] = single(*found, read_values(axis, *found));
  });
  refuse_two_batches(map);
  if (map.find("batch_size") != nullptr && axes["batch_size"] == AxisValue(kLargest))
    map.find("batch_size")->fail("a training run has no search for the largest batch; write a number");
  return axes;
}

// visit_knob() makes this function for every type of member and every kind of value. Combinations that no
// knob has, such as a number for the rates of an optimizer, do nothing.
void take_knob(const YamlNode& node, const Knob& knob, TrainingRun& run) {
  visit_knob(knob, run, [&](auto& member, const auto& kind) {
    if constexpr (std::is_same_v<decltype(member), bool&>)
      member = node.boolean();
    else if constexpr (std::is_same_v<decltype(member), std::string&>)
      member = to_text(single(node, read_choices(node, lr_scheduler_kind())));
    else if constexpr (std::is_assignable_v<decltype(member), decltype(kind.parse(""))>)
      member = node.value(kind);
  });
}

void take_knobs(const YamlMap& map, TrainingRun& run) {
  for (const Knob& knob : kKnobs)
    if (const YamlNode* found = knob.key == nullptr ? nullptr : map.find(knob.key))
      take_knob(*found, knob, run);
  if (map.find("steps") != nullptr && map.find("epochs") != nullptr)
    map.find("epochs")->fail("there are steps too; write one of them");
  if (const YamlNode* found = map.find("eval_every"); found != nullptr && run.eval_batches == int64_t{0})
    found->fail("changes nothing: eval_batches 0 evaluates nothing; leave out one of them");
}

// The position of a whole word in the text; npos if it is not there.
size_t find_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return at;
  }
  return std::string::npos;
}

std::string flag_of_key(const std::string& key) {
  std::string flag = "--" + key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace

std::string located(const TrainingRun& run, std::string text) {
  if (run.file.empty() || text.starts_with(run.file)) return text;
  // Some keys are plain words that a message may contain for another reason. They count only if the message
  // names their flag.
  std::set<std::string> keys;
  for (const auto& [key, place] : run.places) {
    const std::string flag = flag_of_key(key);
    const bool is_plain_word =
        key == "data" || key == "model" || key == "steps" || key == "seed" || key == "strategy";
    if (!is_plain_word) keys.insert(key);
    for (size_t at = find_word(text, flag); at != std::string::npos; at = find_word(text, flag)) {
      text.replace(at, flag.size(), key);
      keys.insert(key);
    }
  }
  // The place is that of the key which the message names first.
  size_t first = std::string::npos;
  std::string where = run.file + ": ";
  for (const std::string& key : keys)
    if (const size_t at = find_word(text, key); at < first) {
      first = at;
      where = run.places.at(key);
    }
  return where + text;
}

std::map<std::string, AxisValue> take_typed(const std::vector<std::string>& texts, TrainingRun& run) {
  const std::vector<std::string> keys = accepted_keys();
  const YamlMap map(YamlNode::of_flag(texts, "--set", keys), "--set", keys);
  take_knobs(map, run);
  // Each of two alternatives replaces the other one.
  if (map.find("steps") != nullptr) run.epochs.reset();
  if (map.find("epochs") != nullptr) run.steps.reset();
  if (map.find("batch_size") != nullptr) run.global_batch.reset();
  if (map.find("global_batch") != nullptr) run.batch_size.reset();
  for (const std::string& key : keys)
    if (map.find(key) != nullptr) run.places.erase(key);
  return axes_in(map);
}

TrainingRun parse_training_run(const std::string& text, const std::string& path) {
  TrainingRun run;
  run.file = path;
  run.file_text = text;
  std::vector<std::string> keys = accepted_keys();
  const std::vector<std::string> settings = keys;
  keys.insert(keys.end(), {"name", "description"});
  const YamlMap map(YamlNode::parse(text, path, "a training run is a map with 'model' and other keys"),
                    "the training run", keys);
  run.axes = axes_in(map);
  take_knobs(map, run);
  for (const std::string& key : settings)
    if (const YamlNode* found = map.find(key)) run.places[key] = found->place();
  for (const char* key : {"name", "description"})
    if (const YamlNode* found = map.find(key)) static_cast<void>(found->text());
  return run;
}

TrainingRun read_training_run(const std::string& path) {
  return parse_training_run(read_text(path, "suites/train/ holds examples"), path);
}

}  // namespace shardmark
