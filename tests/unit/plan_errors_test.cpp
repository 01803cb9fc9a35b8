// Tests invalid suites. Each error is one line with the exact position, what was found, and what is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/suite.h"

namespace shardmark {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_suite(text, "s.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

// Returns a training block with an additional line, which is line 6 and starts at column 5.
std::string with_line(const std::string& line) {
  return "training:\n  - model: mlp\n    strategy: ddp\n    batch_size: 4\n    data: synthetic\n    " + line +
         "\n";
}

struct Wrong {
  const char* text;
  const char* error;  // the whole line of the error
};

TEST(SuiteErrors, NameFileLineAndColumn) {
  const Wrong cases[] = {
      {"", "s.yaml:1:1: empty; a suite is a map with 'training' or 'collectives' (see suites/README.md)"},
      {"# only a comment\n",
       "s.yaml:1:1: empty; a suite is a map with 'training' or 'collectives' (see suites/README.md)"},
      {"- a\n- b\n", "s.yaml:1:1: expected a map (key: value), got a list"},
      {"name: x\n",
       "s.yaml:1:1: nothing to measure; a suite has 'training' or 'collectives' (see suites/README.md)"},
      {"name: x\nseed: -1\n",
       "s.yaml:2:7: seed: expected a whole number from 0 to 9223372036854775807, got '-1'"},
      {"seed: '1'\n",
       "s.yaml:1:7: seed: expected a whole number from 0 to 9223372036854775807, got the text '1'"},
      {"seed: 1.5\n", "s.yaml:1:7: seed: expected a whole number from 0 to 9223372036854775807, got '1.5'"},
      {"seed: 99999999999999999999\n",
       "s.yaml:1:7: seed: expected a whole number from 0 to 9223372036854775807, got '99999999999999999999'"},
      {"repeats: 0\n", "s.yaml:1:10: repeats: expected a whole number from 1 to 1000, got '0'"},
      {"shuffle: yes\n", "s.yaml:1:10: shuffle: expected true or false, got 'yes'"},
      {"name: [a]\n", "s.yaml:1:7: name: expected a string, got a list"},
      {"ranks: []\n", "s.yaml:1:8: ranks: an empty list; write at least one value"},
      {"ranks: [1, [2]]\n", "s.yaml:1:12: ranks: a list in a list; an axis is one flat list"},
      {"ranks: [1, four]\n", "s.yaml:1:12: ranks: expected a whole number from 1 to 1048576, got 'four'"},
      {"ranks: !!int 4\n",
       "s.yaml:1:8: ranks: tags such as 'tag:yaml.org,2002:int' have no meaning here; remove it"},
      {"transport: tcp\n", "s.yaml:1:12: unknown transport 'tcp'; accepted: hierarchical, mpi, nccl, pt2pt"},
      {"sampling: {min_step: 4}\n",
       "s.yaml:1:12: unknown key 'min_step' in sampling; did you mean 'min_steps'? accepted: warmup_steps, "
       "min_steps, "
       "max_steps, time_limit, precision, duration"},
      {"accept: {pair: 5s}\n",
       "s.yaml:1:10: unknown key 'pair' in accept; did you mean 'pairs'? accepted: pairs, storage, folder, "
       "baseline"},
      {"accept: {storage: 1KiB}\n",
       "s.yaml:1:19: storage: expected a size from 1 MiB to 1024 TiB, such as 25MB, 128MiB or 1GiB (K, M, G: "
       "powers of 1024), got '1KiB'"},
      {"sampling: {min_steps: 10, max_steps: 5}\n",
       "s.yaml:1:11: sampling: min_steps 10 is above max_steps 5"},
      {"sampling: {duration: 2 hours}\n",
       "s.yaml:1:22: duration: expected a time above 0, at most 10000h, such as 120ms, 90s, 30m or 2h, got "
       "'2 hours'"},
      {"sampling: {duration: 0s}\n",
       "s.yaml:1:22: duration: expected a time above 0, at most 10000h, such as 120ms, 90s, 30m or 2h, got "
       "'0s'"},
      {"sampling: {duration: 1e300h}\n",
       "s.yaml:1:22: duration: expected a time above 0, at most 10000h, such as 120ms, 90s, 30m or 2h, got "
       "'1e300h'"},
      {"memory_limit: 1\n",
       "s.yaml:1:15: memory_limit: expected a size from 1 MiB to 1024 TiB, such as 25MB, 128MiB or 1GiB (K, "
       "M, G: powers "
       "of 1024), got '1'"},
      {"sampling: {time_limit: 0}\n",
       "s.yaml:1:24: time_limit: expected a number above 0, at most 10000000, got '0'"},
      {"sampling: {time_limit: inf}\n",
       "s.yaml:1:24: time_limit: expected a number above 0, at most 10000000, got 'inf'"},
      {"seed: 1\nseed: 2\n", "s.yaml:2:1: key 'seed' is given twice; keep one"},
      {"name: a\n---\nname: b\n",
       "s.yaml:2:1: a second document, or a stray character before it; a suite is one document"},
      {", name: a\n",
       "s.yaml:1:1: a second document, or a stray character before it; a suite is one document"},
      {"name: [a\n", "s.yaml:2:1: not valid YAML: end of sequence flow not found"},
      {"name: \"a\nrepeats: 5\n", "s.yaml:1:7: not valid YAML: the quote that begins here is never closed"},
      {"seed: 1\nname: 'it''s\n", "s.yaml:2:7: not valid YAML: the quote that begins here is never closed"},
      {"name: \"a\\\"\n", "s.yaml:1:7: not valid YAML: the quote that begins here is never closed"},
      {"training: 4\n", "s.yaml:1:11: training: expected a map (key: value), got '4'"},
      {"name: a\nseed: \xff\n", "s.yaml:2:7: not UTF-8; save the file as UTF-8 text"},
      {"? [a]\n: b\n", "s.yaml:1:3: expected a word as key, got a list"},
  };
  for (const auto& wrong : cases) EXPECT_EQ(error_of(wrong.text), wrong.error) << wrong.text;
}

TEST(SuiteErrors, InTrainingBlocks) {
  const Wrong cases[] = {
      {"stratgy: ddp",
       "s.yaml:6:5: unknown key 'stratgy' in training; did you mean 'strategy'? accepted: model, data, "
       "strategy, optimizer, precision, products, reduce_dtype, clip_norm, checkpointing, kernels, graph, "
       "gathers, "
       "batch_size, "
       "global_batch, "
       "accumulation, tensor, sequence_parallel, context, expert, dispatch, pipeline, pipeline_schedule, "
       "stages, "
       "rank_order, "
       "save, ranks, transport, environment, sampling"},
      {"<<: {a: 1}",
       "s.yaml:6:5: unknown key '<<' in training; merge keys are not supported, an anchor on a value is; "
       "accepted: model, data, "
       "strategy, optimizer, precision, products, reduce_dtype, clip_norm, checkpointing, kernels, graph, "
       "gathers, "
       "batch_size, "
       "global_batch, "
       "accumulation, tensor, sequence_parallel, context, expert, dispatch, pipeline, pipeline_schedule, "
       "stages, "
       "rank_order, "
       "save, ranks, transport, environment, sampling"},
      {"optimizer: adam",
       "s.yaml:6:16: unknown optimizer 'adam'; did you mean 'adamw'? accepted: adamw, sgd"},
      {"optimizer: {sgd: {lr: fast}}",
       "s.yaml:6:27: option 'lr' of optimizer sgd is \"fast\"; accepted: a number from 0 to 1e+30"},
      {"optimizer: {adamw: {beta1: 1.0}}",
       "s.yaml:6:32: option 'beta1' of optimizer adamw is 1.0; accepted: a number from 0 to 0.999999"},
      {"optimizer: {adamw: {beta2: 0.9999999}}",
       "s.yaml:6:32: option 'beta2' of optimizer adamw is 0.9999999; accepted: a number from 0 to 0.999999"},
      {"optimizer: {sgd: {learn: 1}}",
       "s.yaml:6:30: unknown option 'learn' of optimizer sgd; accepted: lr, momentum, weight_decay"},
      {"optimizer: {sgd: 4}", "s.yaml:6:22: sgd: expected a map (key: value), got '4'"},
      {"optimizer: {sgd: {}, adamw: {}}",
       "s.yaml:6:16: optimizer: expected one name with its options, {name: {option: value}}, got 2 names; "
       "several are "
       "a list"},
      {"optimizer:", "s.yaml:6:5: optimizer: no value; accepted: adamw, sgd"},
      {"optimizer: {sgd: {lr: }}", "s.yaml:6:23: lr: expected one value, got nothing"},
      {"checkpointing: half",
       "s.yaml:6:20: checkpointing: expected none, full, n to recompute every n-th block, or gathered, got "
       "'half'"},
      {"clip_norm: -1", "s.yaml:6:16: clip_norm: expected a number above 0, at most 1e+30, got '-1'"},
      {"precision: fp8",
       "s.yaml:6:16: precision: unknown value 'fp8'; accepted: fp32, tf32, bf16, fp16, fp64"},
      {"global_batch: 8", "s.yaml:6:19: global_batch: there is a batch_size too; write one of them"},
      {"accumulation: 0", "s.yaml:6:19: accumulation: expected a whole number from 1 to 65536, got '0'"},
  };
  for (const auto& wrong : cases) EXPECT_EQ(error_of(with_line(wrong.text)), wrong.error) << wrong.text;
}

TEST(SuiteErrors, MissingAndContradictingKeys) {
  const Wrong cases[] = {
      {"training:\n  - {model: mlp, batch_size: 4}\n", "s.yaml:2:5: training needs the key 'strategy'"},
      {"training:\n  - {model: mlp, strategy: ddp}\n",
       "s.yaml:2:5: training: needs batch_size (per rank: weak scaling) or global_batch (of all ranks: "
       "strong scaling)"},
      {"training: {model: {gpt2: {width: 10, heads: 3}}, strategy: ddp, batch_size: 1}\n",
       "s.yaml:1:20: gpt2: width 10 is not a multiple of heads 3; a head takes width / heads channels"},
      {"training: {model: mlp, data: {synthetic: {size: 9000000000000000000}}, strategy: ddp, batch_size: "
       "1}\n",
       "s.yaml:1:49: option 'size' of data synthetic is 9000000000000000000; accepted: an integer from 1 to "
       "1099511627776"},
      {"training: {model: mlp, data: text, strategy: ddp, batch_size: 1}\n",
       "s.yaml:1:30: data text needs option 'files': patterns from the working directory, or else "
       "from the suite's folder: \"texts/*.txt\""},
      {"collectives: {operation: all_reduce}\n", "s.yaml:1:14: collectives needs the key 'bytes'"},
      {"collectives: {operation: allreduce, bytes: 8}\n",
       "s.yaml:1:26: operation: unknown value 'allreduce'; did you mean 'all_reduce'? accepted: all_reduce, "
       "reduce_scatter, "
       "all_gather, broadcast, reduce, all_to_all, gather, scatter, send_recv, all_to_all_v, dispatch, "
       "combine, all"},
      {"collectives: {operation: [all, reduce], bytes: 8}\n",
       "s.yaml:1:26: operation: 'all' stands for every operation; write it alone"},
      {"collectives: {operation: all, bytes: 4QB}\n",
       "s.yaml:1:38: bytes: expected a size from 1 B to 1 TiB, such as 25MB, 128MiB or 1GiB (K, M, G: powers "
       "of "
       "1024), got '4QB'"},
      {"collectives: {operation: all, bytes: 0}\n",
       "s.yaml:1:38: bytes: expected a size from 1 B to 1 TiB, such as 25MB, 128MiB or 1GiB (K, M, G: powers "
       "of "
       "1024), got '0'"},
      {"collectives: {operation: all, bytes: {from: 16, to: 8}}\n",
       "s.yaml:1:38: bytes: from 16 is above to 8"},
      {"collectives: {operation: all, bytes: {from: 8, to: 16, factor: 1}}\n",
       "s.yaml:1:64: factor: expected a whole number from 2 to 1099511627776, got '1'"},
      {"collectives: {operation: all, bytes: {from: 8}}\n",
       "s.yaml:1:38: a range of bytes needs the key 'to'"},
  };
  for (const auto& wrong : cases) EXPECT_EQ(error_of(wrong.text), wrong.error) << wrong.text;
}

TEST(SuiteErrors, OptionsOfAReduction) {
  const auto error = [](const std::string& reduction) {
    return error_of("training:\n  model: mlp\n  batch_size: 4\n  strategy: {ddp: {reduction: " + reduction +
                    "}}\n");
  };
  EXPECT_THAT(error("tpk"),
              testing::StartsWith("s.yaml:4:31: unknown reduction 'tpk'; did you mean 'topk'?"));
  EXPECT_EQ(error("{topk: {ratio: 0}}"),
            "s.yaml:4:46: option 'ratio' of reduction topk is 0; accepted: a number from 1e-06 to 1");
  EXPECT_EQ(error("{topk: {ratio: [0.1, 1.5]}}"),
            "s.yaml:4:46: option 'ratio' of reduction topk is 1.5; accepted: a number from 1e-06 to 1");
  EXPECT_EQ(error("{plain: {ratio: 0.1}}"),
            "s.yaml:4:47: unknown option 'ratio' of reduction plain; accepted: none");
}

TEST(SuiteErrors, SlipsThatExplode) {
  std::string list = "[1";
  for (int i = 2; i <= 400; ++i) list += ", " + std::to_string(i);
  list += "]";
  EXPECT_THAT(
      error_of("{ranks: " + list + ", training: {model: mlp, strategy: ddp, batch_size: " + list + "}}"),
      testing::HasSubstr("this block makes more than 100000 points"));
  EXPECT_THAT(
      error_of("{repeats: 1000, ranks: " + list + ", training: {model: mlp, strategy: ddp, batch_size: 1}}"),
      testing::HasSubstr("more than 100000 points"));
  EXPECT_THAT(error_of("training: {model: {mlp: {width: " + list + ", features: " + list +
                       "}}, strategy: ddp, batch_size: 1}"),
              testing::HasSubstr("the lists make more than 10000 choices"));
}

TEST(SuiteErrors, AliasesThatRecurAreNoLoop) {
  EXPECT_EQ(error_of("ranks: &a [1, *a]\n"), "s.yaml:1:8: ranks: a list in a list; an axis is one flat list");
}

TEST(SuiteErrors, MissingFilesAndFolders) {
  for (const std::string path : {"/nowhere/x.yaml", "/tmp"}) {
    try {
      read_suite(path);
      FAIL() << path;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(path + ": cannot be read: "));
    }
  }
}

TEST(SuiteErrors, DeepNestingIsRefused) {
  for (const std::string open : {"[", "{a: ", "- "})
    for (const size_t depth : {100u, 1000u, 100000u}) {
      std::string text = "training: ";
      for (size_t i = 0; i < depth; ++i) text += open;
      EXPECT_THROW(parse_suite(text, "s.yaml"), UsageError) << open << depth;
    }
}

}  // namespace
}  // namespace shardmark
