// Tests the import of tables that people write and that spreadsheets and programs save.
#include "import_fixture.h"

namespace shardmark::imports {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ImportTable, ReadsCsv) {
  const Contents said = contents_of(source_named("training.csv"));
  ASSERT_THAT(said.measured, SizeIs(8));
  EXPECT_THAT(said.warnings, IsEmpty());
  const Measured& first = said.measured.front();
  EXPECT_EQ(first.line, 3);
  EXPECT_EQ(first.launch, "1");
  EXPECT_EQ(first.record.point.training.batch_size, 8);
  EXPECT_EQ(first.record.point.training.scaling, "strong");
  EXPECT_DOUBLE_EQ(first.record.measures.step_s, 0.4);
  EXPECT_DOUBLE_EQ(first.record.measures.tokens_per_s, 160 * 1024) << "the sequences of gpt2_xl";
  EXPECT_DOUBLE_EQ(said.measured[1].record.measures.samples_per_s, 64 / 0.404);
}

TEST(ImportTable, ReadsYamlAndKeepsUnknownNames) {
  const Contents said = contents_of(source_named("training.yaml"));
  ASSERT_THAT(said.measured, SizeIs(2));
  const Record& record = said.measured.front().record;
  EXPECT_EQ(record.point.training.model.name, "our-8b");
  EXPECT_EQ(record.point.training.precision, "fp8");
  EXPECT_DOUBLE_EQ(record.measures.samples_per_s, 8);
  EXPECT_DOUBLE_EQ(record.measures.step_s, 1);
  EXPECT_THAT(said.warnings,
              ElementsAre(AllOf(HasSubstr("kept as written"), HasSubstr("our-8b"), HasSubstr("megatron"))));
}

TEST(ImportTable, RefusesContradictionsByLine) {
  const Source csv = source_named("training.csv");
  const auto error = [&](const std::string& from, const std::string& to) {
    return error_of([&] { contents_of(replaced(csv, from, to)); });
  };
  EXPECT_THAT(error("400,160,1", "400,16,1"),
              HasSubstr("training.csv:3: samples/s, and the batch / the step: 16 and 160 contradict"));
  EXPECT_THAT(error("404,,2", "0.404,,2"),
              HasSubstr("training.csv:4: a step of 0.000404 s, of 0.4 s in line 3 of the same setting"));
  EXPECT_THAT(error("404,,2", ",,2"), HasSubstr("training.csv:4: no time and no rate"));
  EXPECT_THAT(error("404,,2", "404 ms,,2"), HasSubstr("training.csv:4: step_ms: expected a number"));
  EXPECT_THAT(error("step_ms,samples_per_s", "step_ms,step_s"), HasSubstr("step_s and step_ms are one time"));
  EXPECT_THAT(error("bf16,64,404", "bf16,63,404"), HasSubstr("a global batch of 63 is no whole number"));
  EXPECT_THAT(error("launch\n", "lunch\n"), HasSubstr("unknown column 'lunch'; did you mean 'launch'?"));
  EXPECT_THAT(error("\"fsdp(shard=full)\"", "\"fsdp(shard=ful)\""), HasSubstr("training.csv:3: strategy"));
  EXPECT_THAT(error("8,1,gpt2_xl,ddp,bf16,64,380,,1", "8,1,gpt2_xl,ddp,bf16,64,380"),
              HasSubstr("training.csv:9: 7 cells, but 9 columns"));
  EXPECT_THAT(
      import_error({replaced(csv, "32,4,", "32,2,")}, {.device = "NVIDIA H100", .transport = "nccl"}),
      AllOf(HasSubstr("training.csv:7: 32 ranks on 2 nodes"), HasSubstr("a study has one placement")));
}

// Spreadsheets save numbers and separators according to the locale.
TEST(ImportTable, ReadsCsvOfEveryLocale) {
  const auto step_of = [](const std::string& text) {
    const Contents said = contents_of({"t.csv", text});
    EXPECT_EQ(said.measured.size(), 1u) << text;
    return said.measured.empty() ? 0 : said.measured.front().record.measures.step_s;
  };
  EXPECT_EQ(step_of("ranks,model,strategy,batch_size,step_s\n8,m,ddp,4,1.5\n"), 1.5);
  EXPECT_EQ(step_of("Ranks,Model,STRATEGY,Batch size,Step-s\n8,m,ddp,4,1.5\n"), 1.5);
  EXPECT_EQ(step_of("ranks;model;strategy;batch_size;step_s\n8;m;ddp;4;1,5\n"), 1.5);
  EXPECT_EQ(step_of("ranks;model;strategy;batch_size;step_s\n8;m;ddp;4;1.5\n"), 1.5);
  EXPECT_EQ(step_of("sep=;\nranks;model;strategy;batch_size;step_s\n8;m;ddp;4;1,5\n"), 1.5);
  EXPECT_EQ(step_of("ranks\tmodel\tstrategy\tbatch_size\tstep_s\n8\tm\tddp\t4\t1,5\n"), 1.5);
  EXPECT_EQ(step_of("ranks|model|strategy|batch_size|step_s\n8|m|ddp|4|1.5\n"), 1.5);
  EXPECT_EQ(
      step_of(
          "\"ranks\",\"model\",\"strategy\",\"batch_size\",\"step_s\"\n\"8\",\"m\",\"ddp\",\"4\",\"1.5\"\n"),
      1.5);
  EXPECT_EQ(step_of("ranks,model,strategy,batch_size,step_s,,\n8,m,ddp,4,1.5,,\n,,,,,,\n"), 1.5);
  const auto error = [](const std::string& text) { return import_error({{"t.csv", text}}); };
  EXPECT_THAT(error("ranks;model;strategy;batch_size;step_ms\n8;m;ddp;4;1,5\n16;m;ddp;4;1.250\n"),
              HasSubstr("t.csv:3: step_ms: '1.250' has a point, numbers above have a comma"));
  EXPECT_THAT(error("ranks;model;strategy;batch_size;step_ms\n8;m;ddp;4;1.234,5\n"),
              HasSubstr("t.csv:2: step_ms: expected a number"));
  EXPECT_THAT(error("ranks,model,strategy,batch_size,step_s\n8,\"m,ddp,4,1.5\n"),
              HasSubstr("t.csv:2: a double quote that does not end on its line"));
  EXPECT_THAT(error("ranks,modle,strategy,batch_size,step_s\n8,m,ddp,4,1.5\n"),
              HasSubstr("did you mean 'model'?"));
}

TEST(ImportTable, ReadsYamlAndJsonAsProgramsWriteThem) {
  const auto ranks_of = [](const std::string& text) {
    std::vector<int64_t> ranks;
    for (const Measured& one : contents_of({"t.yaml", text}).measured)
      ranks.push_back(one.record.point.ranks);
    return ranks;
  };
  const std::vector<int64_t> both = {8, 16};
  EXPECT_EQ(ranks_of("---\n- {ranks: 8, model: m, strategy: ddp, batch_size: 4, step_s: 1}\n"
                     "- {ranks: 16, model: m, strategy: ddp, batch_size: 4, step_s: 1}\n"),
            both);
  EXPECT_EQ(
      ranks_of(
          "# of us\n\n--- # results\n- Ranks: 8\n  Model: m\n  strategy: ddp\n  Batch size: 4\n  step_s: 1\n"
          "- {ranks: 16, model: m, strategy: ddp, batch_size: 4, step_s: 1}\n"),
      both);
  const std::string one = R"({"ranks": 8, "model": "m", "strategy": "ddp", "batch_size": 4, "step_s": 1})",
                    other = R"({"ranks": 16, "model": "m", "strategy": "ddp", "batch_size": 4, "step_s": 1})";
  EXPECT_EQ(ranks_of("[" + one + ",\n " + other + "]\n"), both);
  EXPECT_EQ(ranks_of("[\n  " + one + ",\n  " + other + "\n]\n"), both);
  EXPECT_EQ(ranks_of(one + "\n" + other + "\n"), both) << "JSON lines";
}

// A name that cannot be parsed as a choice is taken as a whole.
TEST(ImportTable, KeepsNamesAsPeopleWriteThem) {
  for (const char* name :
       {"GPT-3 (175B)", "Llama 3.1 8B", "ResNet-50 v1.5", "bert-large: phase 2", "a&b", "x#1", "a=b",
        "llama:8b", "gpt2(124M)", "gpt2_xl()", "a, b", "naïve", "'x'", "(", ")", "a(b", "="}) {
    const Imported imported = imported_results(
        {{"t.csv", "ranks,model,strategy,optimizer,data,batch_size,step_s\n8,\"" + std::string(name) +
                       "\",\"" + name + "\",\"" + name + "\",\"" + name + "\",4,1\n"}},
        {.device = "X", .transport = "nccl"});
    const TrainingPoint& t = imported.records.front().point.training;
    for (const Choice& choice : {t.model, t.strategy, t.optimizer, t.data}) {
      EXPECT_EQ(to_text(choice), name);
      EXPECT_EQ(choice_or_name(to_text(choice)), choice) << name;
    }
  }
  const auto error = [](const std::string& name) {
    return import_error({{"t.csv", "ranks,model,strategy,batch_size,step_s\n8,\"" + name + "\",ddp,4,1\n"}});
  };
  EXPECT_THAT(error("gpt2_xl(layers=48"),
              HasSubstr("t.csv:2: model: 'gpt2_xl(layers=48': expected ',' or ')'"));
  EXPECT_THAT(error("gpt2_xl(layers=x)"), HasSubstr("t.csv:2: model"));
  EXPECT_THAT(error("a\xe9"),
              HasSubstr("t.csv:2: model: 'a\\xe9' holds control characters, or bytes that are no UTF-8"));
  EXPECT_THAT(error("a\x07"), HasSubstr("t.csv:2: model"));
  EXPECT_THAT(error(std::string(1000, 'a')), HasSubstr("t.csv:2: model: a name of 1000 bytes"));
}

TEST(ImportTable, NamesTheFirstOfManyUnknownNames) {
  std::string csv = "ranks,model,strategy,batch_size,step_s\n";
  for (int i = 0; i < 1000; ++i) csv += "8,m" + std::to_string(i) + ",ddp,4,1\n";
  const Contents said = contents_of({"t.csv", csv});
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr(" and 980 more")));
  EXPECT_LT(said.warnings.front().size(), 1000u);
}

TEST(ImportTable, HasAsManyRowsAsAStudy) {
  std::string csv = "ranks,model,strategy,batch_size,step_s\n";
  for (int64_t i = 0; i <= kMostResults; ++i) csv += "8,m,ddp,4,1\n";
  EXPECT_THAT(import_error({{"t.csv", csv}}), HasSubstr("t.csv: more than 100000 results"));
}

TEST(ImportTable, LaunchesAreRepeatsThatCount) {
  const Imported imported =
      imported_results({source_named("training.csv")}, {.device = "NVIDIA H100", .transport = "nccl"});
  EXPECT_EQ(imported.num_launches, 2);
  EXPECT_EQ(imported.environment.world_ranks, 32);
  EXPECT_EQ(imported.environment.nodes.size(), 4u);
  EXPECT_EQ(imported.records[0].point.repeat, 0);
}

}  // namespace
}  // namespace shardmark::imports
