// A study is readable without our code: h5py sees columns, units, flags, texts and ragged samples as
// documented.
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

TEST(StudyFile, IsReadableWithH5py) {
  std::string python;
  for (const std::string candidate : {SHARDMARK_SOURCE_DIR "/.venv/bin/python", "python3"})
    if (std::system((candidate + " -c 'import h5py' 2>/dev/null").c_str()) == 0) python = candidate;
  if (python.empty()) GTEST_SKIP() << "no python with h5py";
  const ScratchDirectory scratch;
  Study study = Study::create(scratch / "x.h5", sample_environment());
  for (const int64_t number : {4, 7}) study.append(filled_record(number));
  study.publish();
  write_text(scratch / "read.py", kScript);
  EXPECT_EQ(std::system((python + " " + (scratch / "read.py") + " " + (scratch / "x.h5")).c_str()), 0);
}

}  // namespace
}  // namespace shardmark
