// Fuzz target for a published study that another program, or another version of this one, wrote. Random
// damage is left out here, because the seal detects it (schema/seal.h, and a unit test flips bytes). The
// input is a list of edits of three bytes each: the dataset, the kind of edit, and one of several unusual
// values.
// REPLAYS 100
#include <array>
#include <limits>
#include <map>

#include "schema/columns.h"
#include "schema/fields.h"
#include "schema/hdf5.h"
#include "schema/version.h"
#include "study_use.h"
#include "tests/unit/analysis_fixture.h"

namespace shardmark {
namespace {

enum Action : uint8_t {
  missing,
  shorter,
  longer,
  other_type,
  empty_dataset,
  a_group,
  odd_value,
  odd_values,
  kActions
};

struct Edit {
  Action action;
  uint8_t value;
};
using Edits = std::map<size_t, Edit>;  // by number of the dataset, in the order of writing

const std::array<std::string, 8> kTexts = {"",         "x(",       "ddp(a=b(c=d))", "train",
                                           "training", "\xff\xfe", "nonsense",      "{}"};
const std::array<int64_t, 8> kIntegers = {
    0, -1, 1, 2, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 1 << 20, 3};
const std::array<double, 8> kNumbers = {0, -1, Measures::kNone, HUGE_VAL, -HUGE_VAL, 1e308, 5e-324, 1e-9};

std::string odd(const std::string&, uint8_t which) { return kTexts[which % 8]; }
int64_t odd(int64_t, uint8_t which) { return kIntegers[which % 8]; }
double odd(double, uint8_t which) { return kNumbers[which % 8]; }
Flag odd(Flag, uint8_t which) { return static_cast<Flag>(which); }

class Writer {
 public:
  explicit Writer(Edits edits) : edits_(std::move(edits)) {}

  template <class T>
  void write(const h5::Id& parent, const std::string& name, std::vector<T> values) {
    const auto edit = edits_.find(number_++);
    if (edit == edits_.end()) {
      h5::write_column(parent, name, values);
      return;
    }
    const uint8_t which = edit->second.value;
    switch (edit->second.action) {
      case missing:
        return;
      case a_group:
        h5::create_group(parent, name);
        return;
      case other_type:
        other_type_instead(parent, name, which);
        return;
      case empty_dataset:
        values.clear();
        break;
      case shorter:
        if (!values.empty()) values.pop_back();
        break;
      case longer:
        values.push_back(odd(T{}, which));
        break;
      case odd_value:
        if (!values.empty()) values[which / 8 % values.size()] = odd(T{}, which);
        break;
      default:
        for (T& value : values) value = odd(T{}, which);
    }
    h5::write_column(parent, name, values);
  }

 private:
  void other_type_instead(const h5::Id& parent, const std::string& name, uint8_t which) {
    if (which % 3 == 0) h5::write_column<std::string>(parent, name, {"a", "b"});
    if (which % 3 == 1) h5::write_column<double>(parent, name, {1.5, 1e300});
    if (which % 3 == 2) h5::write_scalar<int64_t>(parent, name, 7);
  }

  Edits edits_;
  size_t number_ = 0;
};

// Points of all kinds, so that every table has rows.
const std::vector<Record>& records() {
  static const std::vector<Record> all = [] {
    std::vector<Record> made;
    for (const int64_t ranks : {1, 2, 4, 8}) {
      made.push_back(training_record("ddp", ranks, 8 / ranks, 0.5 / static_cast<double>(ranks), 0.01));
      made.push_back(training_record("fsdp", ranks, 4, 0.3, 0.02));
    }
    made.push_back(training_record("single", 2, 4, 0.2));
    for (const bool in_place : {true, false})
      made.push_back(collective_record("all_reduce", 2, 1 << 20, in_place, 1e-3));
    made.push_back(training_record("zero3", 2, 4, 0.3));
    made.back().point.workload = "train";
    made.push_back(training_record("zero3", 16, 4, 0.3));
    made.back().outcome = Outcome::failed;
    return made;
  }();
  return all;
}

void write_study(const std::string& path, Writer writer) {
  const h5::Id file = h5::create_file(path);
  h5::write_attribute(file, "creator", "shardmark");
  h5::write_attribute(file, "schema_version", schema_version());
  const h5::Id points = h5::create_group(file, "points");
  std::vector<RecordColumn> columns = make_columns();
  for (const Record& record : records()) append_row(columns, record);
  for (const RecordColumn& column : columns)
    std::visit([&](const auto& values) { writer.write(points, column.name, values); }, column.values);
  const h5::Id samples = h5::create_group(file, "samples");
  const size_t count = records().size();
  for (const SeriesInfo& info : kSeries) {
    const h5::Id group = h5::create_group(samples, std::string(info.name));
    writer.write(group, "values", std::vector<double>(4 * count, 0.25));
    std::vector<int64_t> offset;
    for (size_t i = 0; i < count; ++i) offset.push_back(static_cast<int64_t>(4 * i));
    writer.write(group, "offset", offset);
    writer.write(group, "length", std::vector<int64_t>(count, 4));
    writer.write(group, "ranks", std::vector<int64_t>(count, 2));
  }
  const h5::Id environment = h5::create_group(file, "environment");
  for (const char* name : {"transport", "versions", "variables", "facts"})
    writer.write<std::string>(environment, name, {"{}"});
  for (const char* name : {"world_ranks", "order_seed", "threads_per_rank"})
    writer.write<int64_t>(environment, name, {2});
  for (const char* name : {"nodes", "devices", "rank_nodes"})
    writer.write<std::string>(environment, name, {"a", "a"});
}

}  // namespace
}  // namespace shardmark

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardmark;
  static const FuzzDirectory directory;
  Edits edits;
  for (size_t i = 0; i + 3 <= size && edits.size() < 16; i += 3)
    edits[data[i]] = {static_cast<Action>(data[i + 1] % kActions), data[i + 2]};
  const std::string path = directory / "x.h5";
  write_study(path, Writer(std::move(edits)));
  use_study(path);
  return 0;
}
