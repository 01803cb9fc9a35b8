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
     &TrainingRun::steps, values::kSteps, Knob::kInFile},
    {"--epochs", kTrained, "instead of --steps: passes over the samples to train on", &TrainingRun::epochs,
     values::kSteps, Knob::kInFile},
    {"--seed", kTrained, "seed of the initial weights and the data", &TrainingRun::seed, values::kSeed,
     Knob::kInFile},
    {"--deterministic", kTrained, "use only algorithms that give the same bits in every run",
     &TrainingRun::deterministic},
    {"--lr", kRate, "peak learning rate (default: the optimizer's)", &TrainingRun::of_optimizer,
     values::kNumber},
    {"--schedule",
     kRate,
     "constant, \"cosine(end=0.1)\", \"step(every=30, factor=0.1)\"",
     &TrainingRun::schedule,
     {},
     Knob::kInFile},
    {"--warmup", kRate, "steps of linear warm-up", &TrainingRun::warmup, values::kStepsOrNone, Knob::kInFile},
    {"--scale-lr", kRate, "the linear scaling rule: rate x ranks", &TrainingRun::scale_lr},
    {"--log-every", kResults, "log every this many steps", &TrainingRun::log_every, values::kSteps,
     Knob::kInFile},
    {"--eval-every", kResults, "steps between two evaluations; 0: at the end only", &TrainingRun::eval_every,
     values::kStepsOrNone, Knob::kInFile},
    {"--eval-batches", kResults,
     "most batches that each rank evaluates, the first ones held out; 0: no evaluation (default: all)",
     &TrainingRun::eval_batches, values::kStepsOrNone, Knob::kInFile},
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
    {"--memory-limit", "Options",
     "memory limit of a rank, such as 8GiB (default: 0.8 of the node's memory / its ranks, or of the GPU)",
     &TrainingRun::memory_limit, values::kMemory, Knob::kInFile},
};

namespace {

std::vector<std::string> accepted_keys() {
  std::vector<std::string> keys = block_keys("training");
  std::erase_if(keys, [](const std::string& key) { return key == "ranks" || key == "sampling"; });
  for (const Knob& knob : kKnobs)
    if (knob.place == Knob::kInFile) keys.push_back(knob.key());
  keys.insert(keys.end(), {"name", "description"});
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

void take_axes(const YamlMap& map, TrainingRun& run) {
  for_each_axis([&](const AxisRow& axis) {
    const YamlNode* const found = map.find(axis.key);
    if (found == nullptr) return;
    run.axes[axis.key] = single(*found, read_values(axis, *found));
    run.places[axis.key] = found->place();
  });
  refuse_two_batches(map);
  if (map.find("batch_size") != nullptr && run.axes["batch_size"] == AxisValue(kLargest))
    map.find("batch_size")->fail("a training run has no search for the largest batch; write a number");
}

void take_knob(const YamlNode& node, const Knob& knob, TrainingRun& run) {
  visit_knob(knob, run, [&](auto& member, const auto& kind) {
    if constexpr (std::is_same_v<decltype(member), std::string&>)
      member = to_text(single(node, read_choices(node, lr_scheduler_kind())));
    else if constexpr (std::is_assignable_v<decltype(member), decltype(kind.parse(""))>)
      member = node.value(kind);
  });
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
  for_each_axis([&](const AxisRow& axis) {
    if (axis.key == key && axis.train_flag != nullptr) flag = axis.train_flag;
  });
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
  size_t first = std::string::npos;
  std::string where = run.file + ": ";
  for (const std::string& key : keys)
    if (const size_t at = find_word(text, key); at < first) {
      first = at;
      where = run.places.at(key);
    }
  return where + text;
}

std::string Knob::key() const {
  std::string key = std::string(flag).substr(2);
  key.resize(std::min(key.find(','), key.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

TrainingRun parse_training_run(const std::string& text, const std::string& path) {
  TrainingRun run;
  run.file = path;
  run.file_text = text;
  const YamlMap map(YamlNode::parse(text, path, "a training run is a map with 'model' and other keys"),
                    "the training run", accepted_keys());
  take_axes(map, run);
  for (const Knob& knob : kKnobs)
    if (const YamlNode* found = map.find(knob.key()); found != nullptr && knob.place == Knob::kInFile) {
      take_knob(*found, knob, run);
      run.places[knob.key()] = found->place();
    }
  if (run.steps && run.epochs) map.find("epochs")->fail("there are steps too; write one of them");
  if (const YamlNode* found = map.find("eval_every"); found != nullptr && run.eval_batches == int64_t{0})
    found->fail("changes nothing: eval_batches 0 evaluates nothing; leave out one of them");
  for (const char* key : {"name", "description"})
    if (const YamlNode* found = map.find(key)) static_cast<void>(found->text());
  return run;
}

TrainingRun read_training_run(const std::string& path) {
  return parse_training_run(read_text(path, "suites/train/ holds examples"), path);
}

}  // namespace shardmark
