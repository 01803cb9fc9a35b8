// Fuzz target for the import of results of other programs, in every format. The corpus is tests/data/import.
// Every command must be able to read what import writes: all tables, comparison, export, prediction and the
// reference collection.
// REPLAYS 1200
#include <array>
#include <string>

#include "analysis/admission.h"
#include "analysis/predict/predictor.h"
#include "analysis/predict/tables.h"
#include "import/results.h"
#include "study_use.h"

namespace shardmark {
namespace {

// A flag that contradicts the file is refused, so there are several sets of flags.
std::array<imports::Given, 4> flags() {
  std::array<imports::Given, 4> sets;
  for (imports::Given& given : sets) given = {.device = "a GPU", .transport = "nccl"};
  sets[1].operation = "all_reduce";
  sets[2].ranks = 2;
  sets[3].nodes = 1;
  return sets;
}

// Aborts the program if the study that was written cannot be read completely by every command.
void read_back(const imports::Imported& imported, const std::string& path) {
  std::filesystem::remove(path);  // that of the previous input
  write_study(path, imported.environment, imported.records);
  try {
    const StudyData study = read_study(path);
    ENSURE(study.records.size() == imported.records.size(), "a record is lost");
    for (size_t i = 0; i < study.records.size(); ++i)
      ENSURE(to_text(study.records[i].point) == to_text(imported.records[i].point) &&
                 point_id(study.records[i].point) == imported.records[i].id,
             "a point is read as another one");
    use(study, path);
    const std::vector<StudyData> studies = {study};
    const ReportData data(studies);
    PredictQuery query;
    query.ranks = {1, 2, 64};
    const std::vector<Predictor> predictors = make_predictors(data.points);
    if (!predictors.empty())
      to_text(predictions_table(data.points, predict_all(data.points, predictors, query), query));
    reasons_against(study, {});
    const StudyData shared = anonymous(study, "");
    ENSURE(reference_name(shared).find('/') == std::string::npos, "a name that leads elsewhere");
  } catch (const UsageError& error) {
    throw ContractError(std::string("what was imported cannot be read: ") + error.what());
  }
}

}  // namespace
}  // namespace shardmark

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardmark;
  static const FuzzDirectory directory;
  static const auto sets = flags();
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const imports::Given& given : sets) {
    bool is_imported = false;
    one_line_or_result("", [&] {
      try {
        const imports::Imported imported = imports::imported_results({{"results", text}}, given);
        is_imported = true;
        read_back(imported, directory / "x.h5");
      } catch (const UsageError& error) {
        const std::string_view line = error.what();
        // If a value contradicts a flag, the error names the flag instead of the file.
        if (!line.starts_with("results") && !line.starts_with("--")) throw ContractError(error.what());
        throw;
      }
    });
    if (is_imported) break;
  }
  return 0;
}
