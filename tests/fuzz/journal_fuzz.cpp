// Fuzz target for a journal with its samples. The input is the text of the journal without checksums, then a
// byte 0, then the samples. Each line that begins with '{' gets a new checksum.
// REPLAYS 2000
#include "schema/content_hash.h"
#include "study_use.h"

namespace shardmark {
namespace {

std::string sealed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    if (line.starts_with('{')) {
      line.front() = ',';
      line = "{\"checksum\":\"" + hash_text(hash_bytes(line)) + '"' + line;
    }
    out += line;
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Resumes the study as `run --resume --rerun-failed` does, without any point to measure.
void publish(const std::string& path) {
  one_line_or_result(path, [&] {
    Study::record_crash(path, Outcome::failed, "its job ended");
    const StudyData before = read_study(path);
    Study study = Study::resume(path, before.environment,
                                [](const std::string&, const Known& known) { return known.has_failed(); });
    study.publish();
    ENSURE(read_study(path).records.size() == before.records.size(), "a record is lost");
  });
}

}  // namespace
}  // namespace shardmark

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardmark;
  static const FuzzDirectory directory;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  const std::string path = directory / "x.h5";
  std::filesystem::remove(path);  // that of the previous input
  write_bytes(path + ".journal", sealed(input.substr(0, end)));
  write_bytes(path + ".samples", input.substr(std::min(end + 1, size)));
  use_study(path);
  publish(path);
  return 0;
}
