// Replaces libFuzzer if there is no clang: runs a target on every file of a corpus, then on randomly damaged
// copies, with a fixed seed. Arguments: the corpus, and the number of damaged inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

class Mutator {
 public:
  std::string damaged(std::string text, const std::vector<std::string>& corpus) {
    for (size_t i = 0, edits = 1 + below(4); i < edits && !text.empty(); ++i)
      edit(text, corpus[below(corpus.size())]);
    return text;
  }
  size_t below(size_t n) { return random_() % n; }

 private:
  // Pieces of text that have a meaning in YAML or JSON.
  static constexpr const char* kPieces[] = {"[",
                                            "]",
                                            "{",
                                            "}",
                                            ":",
                                            ": ",
                                            "- ",
                                            "\n",
                                            "  ",
                                            "\t",
                                            "*m",
                                            "&m ",
                                            "!!int ",
                                            "<<: ",
                                            "'",
                                            "\"",
                                            "#",
                                            "|",
                                            ">",
                                            "?",
                                            "~",
                                            "---\n",
                                            "\xff",
                                            "1e999",
                                            "-1",
                                            "0",
                                            "null",
                                            "99999999999999999999",
                                            "9223372036854775807",
                                            "[[[[[[[[",
                                            "name: x\n",
                                            "%",
                                            "\\x",
                                            "1e-320",
                                            "\"inf\""};

  void edit(std::string& text, const std::string& other) {
    const size_t at = below(text.size()), length = std::min(below(12), text.size() - at);
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.replace(at, length, other.substr(std::min(at, other.size()), length));
        break;
      case 4:
        text.resize(at);
        break;
      default:
        text.insert(below(text.size()), text.substr(at, length));
        break;
    }
  }

  std::mt19937_64 random_{1};
};

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator{argv[1]}, {});
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::fprintf(stderr, "%s\n",
                 path.c_str());  // if the program crashes, the last file named is the one that failed
    run(corpus.back());
  }
  Mutator mutator;
  const int count = std::stoi(argv[2]);
  for (int i = 0; i < count && !corpus.empty(); ++i) {
    const std::string input = mutator.damaged(corpus[mutator.below(corpus.size())], corpus);
    std::ofstream("replay-last-input", std::ios::binary)
        << input;  // keeps the input for inspection after a crash
    run(input);
  }
  std::filesystem::remove("replay-last-input");
  std::fprintf(stderr, "%zu files and %d damaged ones: each a result or one line\n", corpus.size(), count);
  return corpus.empty() ? 1 : 0;
}
