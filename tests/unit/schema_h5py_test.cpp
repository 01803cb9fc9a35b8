// A study can be read without our code: h5py finds the columns, units, flags, texts and ragged samples that
// are documented.
#include <gmock/gmock.h>

#include <cstdlib>

#include "schema_fixture.h"

namespace shardmark {
namespace {

constexpr const char* kScript = R"(
import sys, json, h5py
with h5py.File(sys.argv[1]) as f:
    assert f.attrs['creator'] == 'shardmark' and f.attrs['schema_version'].split('.')[0] == '1'
    assert f.attrs['suite'] == 'name: quick\n# \u00b5\n', f.attrs['suite']
    assert f.attrs['command_line'].startswith('shardmark run')
    for name, column in f['points'].items():
        assert column.shape == (2,), name
        assert isinstance(column.attrs['unit'], str) and column.attrs['description'], name
    assert list(f['points'])[:2] == ['id', 'outcome']
    assert f['points/ranks'].dtype == 'int64' and f['points/step'].dtype == 'float64'
    assert f['points/in_place'].dtype == bool
    assert f['points/id'].asstr()[:].tolist() == ['record-4', 'record-7']
    assert f['points/outcome'].asstr()[0] == 'timed_out'
    assert f['points/strategy'].asstr()[0].startswith('choice')
    assert f['points/step'].attrs['unit'] == 's'
    offset, length, ranks = (f['samples/step'][k][1] for k in ('offset', 'length', 'ranks'))
    steps = f['samples/step/values'][offset:offset + length].reshape(ranks, -1)
    assert steps.shape == (2, 4) and abs(steps[1, 1] - 7.005) < 1e-12, steps
    assert f['samples/optimizer/ranks'][:].tolist() == [0, 0]
    assert f['environment/devices'].asstr()[:].tolist() == ['cpu'] * 3
    assert f['environment/world_ranks'][()] == 3
    assert json.loads(f['environment/versions'].asstr()[()])['torch'] == '2.11.0'
)";

// Returns a Python that has these modules, or "" if there is none.
std::string python_with(const std::string& modules) {
  for (const std::string candidate : {SHARDMARK_SOURCE_DIR "/.venv/bin/python", "python3"})
    if (std::system((candidate + " -c 'import " + modules + "' 2>/dev/null").c_str()) == 0) return candidate;
  return "";
}

TEST(StudyFile, IsReadableWithH5py) {
  const std::string python = python_with("h5py");
  if (python.empty()) GTEST_SKIP() << "no python with h5py";
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  for (const int64_t number : {4, 7}) study.append(filled_record(number));
  study.publish();
  write_text(scratch / "read.py", kScript);
  EXPECT_EQ(std::system((python + " " + (scratch / "read.py") + " " + (scratch / "x.h5")).c_str()), 0);
}

// results/read_study.py computes the step times from the raw samples.
TEST(StudyFile, TheExampleForPandasRuns) {
  const std::string python = python_with("h5py, pandas");
  if (python.empty()) GTEST_SKIP() << "no python with h5py and pandas";
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  Record measured, skipped;
  measured.id = "a";
  measured.measures.step_s = 0.25;
  measured.samples = {{"step", 2, 3, {0.125, 0.25, 0.0625, 0.25, 0.125, 0.75}}};
  skipped.id = "b";
  skipped.outcome = Outcome::skipped;
  study.append(measured);
  study.append(skipped);
  study.publish();
  const std::string command = python + " " SHARDMARK_SOURCE_DIR "/results/read_study.py " +
                              (scratch / "x.h5") + " >" + (scratch / "said") + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string said = read_text(scratch / "said");
  EXPECT_THAT(
      said, ::testing::HasSubstr("2 points; step: median over the steps, of the slowest rank's time, in s"));
  EXPECT_THAT(said, ::testing::ContainsRegex("\n0 +1 +0.25 +0.25\n?$")) << "the skipped point is left out";
}

}  // namespace
}  // namespace shardmark
