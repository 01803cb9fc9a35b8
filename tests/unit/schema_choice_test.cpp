// Tests choices: how they are resolved against a table of options, and that their text is read back exactly.
#include <gmock/gmock.h>

#include "schema_fixture.h"

namespace shardmark {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const OptionTable table = {
    {"shard", OptionType::text, "full", "what is sharded", {"full", "gradients"}},
    {"prefetch", OptionType::integer, 1, "blocks gathered ahead", {}, 0, 8},
    {"lr", OptionType::number, 1e-3, "learning rate", {}, 0},
    {"tied", OptionType::boolean, true, "weights are shared"},
    {"file", OptionType::text, nullptr, "where the data lies"},
};

Choice resolve_with(const std::string& key, const OptionValue& value) {
  Choice choice{"fsdp", {{"file", "x"}}};
  choice.options[key] = value;
  return resolve(choice, table, "strategy");
}

TEST(ChoiceResolve, FillsDefaultsInTheOrderOfTheTable) {
  const Choice resolved = resolve({"fsdp", {{"file", "x"}, {"shard", "gradients"}}}, table, "strategy");
  EXPECT_EQ(to_text(resolved), "fsdp(shard=gradients, prefetch=1, lr=0.001, tied=true, file=x)");
  EXPECT_EQ(to_text(without_defaults(resolved, table)), "fsdp(shard=gradients, file=x)");
  EXPECT_EQ(resolve(resolved, table, "strategy"), resolved);
}

TEST(ChoiceResolve, WritesANumberOneWay) {
  EXPECT_EQ(to_text(resolve_with("lr", 1)), to_text(resolve_with("lr", 1.0)));
}

TEST(ChoiceResolve, NamesUnknownOptionsWithTheKnownOnes) {
  const auto where = [](const std::string& key) {
    return "suites/x.yaml:7:" + std::to_string(key.size()) + ": ";
  };
  const Choice wrong{"fsdp", {{"shrad", "full"}}};
  EXPECT_EQ(usage_error([&] { resolve(wrong, table, "strategy", where); }),
            "suites/x.yaml:7:5: unknown option 'shrad' of strategy fsdp; accepted: shard, prefetch, lr, "
            "tied, "
            "file");
  EXPECT_THAT(usage_error([&] {
                resolve({"ddp", {{"a", 1}}}, {}, "strategy");
              }),
              HasSubstr("accepted: none"));
}

TEST(ChoiceResolve, NamesARequiredOption) {
  EXPECT_EQ(usage_error([] { resolve({"fsdp"}, table, "strategy"); }),
            "strategy fsdp needs option 'file': where the data lies");
}

TEST(ChoiceResolve, RefusesWrongTypesAndValues) {
  const auto message = [](const std::string& key, const OptionValue& value) {
    return usage_error([&] { resolve_with(key, value); });
  };
  EXPECT_EQ(message("shard", "half"),
            "option 'shard' of strategy fsdp is \"half\"; accepted: full, gradients");
  EXPECT_THAT(message("shard", 3), HasSubstr("is 3; accepted: full, gradients"));
  EXPECT_THAT(message("prefetch", 9), HasSubstr("is 9; accepted: an integer from 0 to 8"));
  EXPECT_THAT(message("prefetch", 1.5), HasSubstr("is 1.5; accepted: an integer"));
  EXPECT_THAT(message("prefetch", true), HasSubstr("is true; accepted: an integer"));
  EXPECT_THAT(message("prefetch", "1"), HasSubstr("is \"1\"; accepted: an integer"));
  EXPECT_THAT(message("lr", -0.1), HasSubstr("accepted: a number from 0 to 1e+30"));
  EXPECT_THAT(message("lr", 1e308), HasSubstr("is 1e+308; accepted: a number from 0 to 1e+30"));
  EXPECT_THAT(message("lr", 1.1e30), HasSubstr("accepted: a number from 0 to 1e+30"));
  EXPECT_THAT(message("lr", "fast"), HasSubstr("accepted: a number"));
  EXPECT_THAT(message("lr", std::nan("")), HasSubstr("accepted: a number"));
  EXPECT_THAT(message("tied", 1), HasSubstr("accepted: true, false"));
  EXPECT_THAT(message("file", 7), HasSubstr("accepted: a string (quote it"));
  EXPECT_THAT(message("file", nullptr), HasSubstr("is null; accepted: a string"));
}

const ChoiceKind& inner_kind() {
  static const ChoiceKind kind = {
      "reduction", {"plain", "topk"}, [](const std::string& name) -> const OptionTable& {
        static const OptionTable none,
            ratio = {{"ratio", OptionType::number, 0.01, "part that is sent", {}, 0, 1}};
        return name == "topk" ? ratio : none;
      }};
  return kind;
}

const OptionTable with_choice = {{.key = "reduction",
                                  .type = OptionType::choice,
                                  .default_value = "plain",
                                  .description = "",
                                  .kind = inner_kind}};

std::string resolved(const std::string& text) {
  return to_text(resolve(choice_from_text(text), with_choice, "strategy"));
}

TEST(ChoiceInAChoice, IsResolvedToo) {
  EXPECT_EQ(resolved("ddp"), "ddp(reduction=plain)");
  EXPECT_EQ(resolved("ddp(reduction=topk)"), "ddp(reduction=topk(ratio=0.01))");
  EXPECT_EQ(resolved("ddp:reduction=topk(ratio=1)"), "ddp(reduction=topk(ratio=1.0))");
  EXPECT_EQ(resolved(resolved("ddp(reduction=topk)")), resolved("ddp(reduction=topk)"));
  const auto brief = [](const std::string& text) {
    return to_text(without_defaults(choice_from_text(resolved(text)), with_choice));
  };
  EXPECT_EQ(brief("ddp"), "ddp");
  EXPECT_EQ(brief("ddp(reduction=topk)"), "ddp(reduction=topk)");
  EXPECT_EQ(brief("ddp(reduction=topk(ratio=0.1))"), "ddp(reduction=topk(ratio=0.1))");
}

TEST(ChoiceInAChoice, IsCheckedToo) {
  const auto message = [](const std::string& text) { return usage_error([&] { resolved(text); }); };
  EXPECT_EQ(message("ddp(reduction=plain(ratio=1))"),
            "unknown option 'ratio' of reduction plain; accepted: none");
  EXPECT_EQ(message("ddp(reduction=topk(ratio=2))"),
            "option 'ratio' of reduction topk is 2; accepted: a number from 0 to 1");
  EXPECT_EQ(message("ddp(reduction=top)"),
            "option 'reduction' of strategy ddp is \"top\"; accepted: plain, topk");
  EXPECT_THAT(message("ddp(reduction=3)"), HasSubstr("is 3; accepted: plain, topk"));
  EXPECT_THAT(message("ddp(reduction=topk(ratio=1)"), HasSubstr("expected ',' or ')' at character 28"));
  EXPECT_THAT(message("ddp(reduction=topk(ratio=a(b=1)))"), HasSubstr("expected ',' or ')' at character 27"));
}

TEST(ChoiceText, ReadsBackWhatItPrints) {
  for (const OptionValue& value : std::vector<OptionValue>{1,
                                                           -3,
                                                           0.1,
                                                           1e-300,
                                                           1.0,
                                                           true,
                                                           false,
                                                           "full",
                                                           "",
                                                           " ",
                                                           "a b",
                                                           "12",
                                                           "1e5",
                                                           "true",
                                                           "null",
                                                           "-",
                                                           "[1]",
                                                           "a=b",
                                                           "a,b",
                                                           "(a)",
                                                           "a(b=1)",
                                                           "a(b=1, c=\"x y\")",
                                                           "a(b=c(d=1))",
                                                           "a(b=1) ",
                                                           "a()",
                                                           "\"",
                                                           "\\",
                                                           "\\\"",
                                                           "a\nb",
                                                           "naïve",
                                                           "../data/x.bin",
                                                           "gpt2:small",
                                                           "[\"]\", \"a\\\"]\"]"}) {
    Choice choice{"name", {{"first", value}, {"second", 2}}};
    const Choice back = choice_from_text(to_text(choice));
    EXPECT_EQ(back, choice) << to_text(choice);
    EXPECT_EQ(back.options.at("first").is<std::string>(), value.is<std::string>()) << to_text(choice);
    EXPECT_EQ(back.options.at("first").is<double>(), value.is<double>()) << to_text(choice);
  }
  EXPECT_EQ(choice_from_text("ddp"), Choice{"ddp"});
}

TEST(ChoiceText, ReadsTheShortForm) {
  const Choice expected{"fsdp", {{"shard", "full"}, {"prefetch", 2}}};
  EXPECT_EQ(choice_from_text("fsdp:shard=full,prefetch=2"), expected);
  EXPECT_EQ(choice_from_text("  fsdp ( shard = full , prefetch = 2 ) "), expected);
  EXPECT_EQ(choice_from_text("text(files=README.md src/**/*.h )").options["files"], "README.md src/**/*.h");
}

TEST(ChoiceText, SaysWhatItExpected) {
  const auto message = [](const std::string& text) { return usage_error([&] { choice_from_text(text); }); };
  EXPECT_EQ(message(""),
            "'': expected a name at character 1; accepted: name, name(option=value, ...), "
            "name:option=value,...");
  EXPECT_THAT(message("(a=1)"), HasSubstr("expected a name at character 1"));
  EXPECT_THAT(message("fsdp()"), HasSubstr("expected an option at character 6"));
  EXPECT_THAT(message("fsdp(shard)"), HasSubstr("expected '=' after 'shard' at character 11"));
  EXPECT_THAT(message("fsdp(shard=)"), HasSubstr("expected a value of 'shard' at character 12"));
  EXPECT_THAT(message("fsdp(shard=full"), HasSubstr("expected ',' or ')' at character 16"));
  EXPECT_THAT(message("fsdp(shard=full,)"), HasSubstr("expected an option at character 17"));
  EXPECT_THAT(message("fsdp(shard=full) x"), HasSubstr("expected the end at character 18"));
  EXPECT_THAT(message("fsdp shard=full"), HasSubstr("expected the end at character 6"));
  EXPECT_THAT(message("fsdp:"), HasSubstr("expected an option at character 6"));
  EXPECT_THAT(message("fsdp(a=1, a=2)"), StartsWith("'fsdp(a=1, a=2)': option 'a' is given twice"));
  EXPECT_THAT(message("fsdp(a=[1,2])"), HasSubstr("expected a value of 'a' at character 8"));
  EXPECT_THAT(message("fsdp(a=\"x)"), HasSubstr("expected '\"' that ends the value of 'a'"));
}

}  // namespace
}  // namespace shardmark
