// Tests the kinds of values: what each accepts, what it refuses, and its error messages.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/value.h"

namespace shardmark {
namespace {

template <class Kind>
std::string refusal(const Kind& kind, const std::string& text) {
  try {
    kind.parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "taken";
}

const std::string kManyDigits(300, '9');

TEST(Values, TakeWhatIsInTheirRange) {
  EXPECT_EQ((Whole{-3, 7}.parse("-3")), -3);
  EXPECT_EQ(values::kSeed.parse("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_DOUBLE_EQ((Real{0, 1}.parse("1e-3")), 1e-3);
  EXPECT_DOUBLE_EQ(values::kDuration.parse("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(values::kDuration.parse("120ms"), 0.12);
  EXPECT_DOUBLE_EQ(values::kLatency.parse("0s"), 0);
  EXPECT_DOUBLE_EQ(values::kRate.parse("25GB/s"), 25e9);
  EXPECT_EQ(Word({{"auto", "cpu"}}).parse("cpu"), "cpu");
}

TEST(Values, TakeSizes) {
  const auto bytes = [](const char* text) { return Bytes{0, values::kMessage.most}.parse(text); };
  EXPECT_EQ(bytes("0"), 0);
  EXPECT_EQ(bytes("8"), 8);
  EXPECT_EQ(bytes("8B"), 8);
  EXPECT_EQ(bytes("4KiB"), 4096);
  EXPECT_EQ(bytes("128M"), 128 << 20);
  EXPECT_EQ(bytes("128MiB"), 128 << 20);
  EXPECT_EQ(bytes("25MB"), 25'000'000);
  EXPECT_EQ(bytes("1.5KiB"), 1536);
  EXPECT_EQ(bytes("1e3"), 1000);
  EXPECT_EQ(bytes("2G"), int64_t{2} << 30);
  EXPECT_EQ(bytes("1TB"), 1'000'000'000'000);
}

TEST(Values, TakeTimesOfJobs) {
  const auto time = [](const char* text) { return values::kJobTime.parse(text); };
  EXPECT_DOUBLE_EQ(time("90"), 5400);  // a plain number is minutes, as in Slurm
  EXPECT_DOUBLE_EQ(time("90m"), 5400);
  EXPECT_DOUBLE_EQ(time("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(time("1d"), 86400);
  EXPECT_DOUBLE_EQ(time("90:30"), 5430);
  EXPECT_DOUBLE_EQ(time("25:00:01"), 90001);
  EXPECT_DOUBLE_EQ(time("1-02:03:04"), 93784);
  for (const char* text :
       {"25:61:61", "1:60:00", "1:00:60", "90:61", "1-24", "1-00:60", "0", "366d", "1h30m", "-1"})
    EXPECT_EQ(
        refusal(values::kJobTime, text),
        "expected a time above 0, at most 365d, such as 90m, 2h, 1d, 02:00:00, 1-00:00:00 or minutes as a "
        "number, got '" +
            std::string(text) + "'");
}

// No kind of number accepts NaN, infinity, a number with trailing characters, or too many digits.
TEST(Values, RefuseWhatIsNoFiniteNumberInTheirRange) {
  const auto refuse_all = [](const auto& kind) {
    for (const std::string& text :
         {std::string(), std::string("nan"), std::string("-nan"), std::string("inf"), std::string("-inf"),
          std::string("infinity"), std::string("1e999"), std::string("-1e999"), std::string("x"),
          std::string("0x10"), std::string("1 2"), std::string(" 1"), std::string("+1"), kManyDigits,
          "-" + kManyDigits})
      EXPECT_NE(refusal(kind, text), "taken") << text;
  };
  refuse_all(values::kRanks);
  refuse_all(values::kSeed);
  refuse_all(values::kTimeout);
  refuse_all(values::kNumber);
  refuse_all(values::kDuration);
  refuse_all(values::kMemory);
  refuse_all(values::kRate);
  refuse_all(values::kJobTime);
  refuse_all(Word{{"auto", "cpu"}});
}

TEST(Values, EndsOfRanges) {
  for (const char* text : {"0", "-1", "4097", "1000000"}) EXPECT_NE(refusal(values::kThreads, text), "taken");
  EXPECT_EQ(refusal(values::kTimeout, "0"), "taken");
  EXPECT_NE(refusal(values::kTimeLimit, "0"), "taken");
  EXPECT_NE(refusal(values::kDuration, "0s"), "taken");
  EXPECT_NE(refusal(values::kDuration, "1e300h"), "taken");
  for (const char* text : {"0", "1", "1023KiB", "0.3", "8MiB x", "8MiBs", "mb", "1e30"})
    EXPECT_NE(refusal(values::kMemory, text), "taken") << text;
  EXPECT_EQ(refusal(values::kMemory, "1MiB"), "taken");
}

TEST(Values, SayWhatIsAcceptedAndWhatCame) {
  EXPECT_EQ(refusal(values::kSeed, "99999999999999999999"),
            "expected a whole number from 0 to 9223372036854775807, got '99999999999999999999'");
  EXPECT_EQ(refusal(values::kTimeLimit, "nan"), "expected a number above 0, at most 10000000, got 'nan'");
  EXPECT_EQ(
      refusal(values::kMemory, "lots"),
      "expected a size from 1 MiB to 1024 TiB, such as 25MB, 128MiB or 1GiB (K, M, G: powers of 1024), got "
      "'lots'");
  EXPECT_EQ(refusal(values::kRanks, kManyDigits),
            "expected a whole number from 1 to 1048576, got '" + std::string(60, '9') + "...'");
  EXPECT_EQ(refusal(Word{{"mpirun", "srun"}}, "mpirn"),
            "unknown value 'mpirn'; did you mean 'mpirun'? accepted: mpirun, srun");
}

}  // namespace
}  // namespace shardmark
