// Shared by the tests of token files: llm.c's files, and sources that read them.
#pragma once

#include "specs/specs.h"
#include "tests/mpi/data_testing.h"

namespace shardmark {

template <class T>
inline std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

class TokenFiles : public DataFiles {
 protected:
  // Returns a file with the tokens 0, 3, 6, ... modulo 1000 or another number.
  template <class Token = uint16_t>
  static std::string file(int32_t magic, int32_t version, int32_t claimed, int32_t count, Token scale = 1,
                          size_t modulo = 1000) {
    std::vector<int32_t> header(256, 0);
    header[0] = magic, header[1] = version, header[2] = claimed;
    std::vector<Token> tokens(static_cast<size_t>(count));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(3 * i % modulo * scale);
    return bytes_of(header) + bytes_of(tokens);
  }
  // Writes m.bin and m.idx, and returns the bytes of the latter. The tokens are 0, 1, 2, ... in sequences of
  // these lengths. `documents` has the first sequence of each document, and then the number of sequences.
  template <class Token = uint16_t>
  std::string megatron(uint8_t type, const std::vector<int32_t>& lengths,
                       const std::vector<int64_t>& documents) {
    std::vector<Token> tokens;
    std::vector<int64_t> begins;
    for (const int32_t length : lengths) {
      begins.push_back(std::ssize(tokens) * static_cast<int64_t>(sizeof(Token)));
      for (int32_t i = 0; i < length; ++i) tokens.push_back(static_cast<Token>(tokens.size() % 1000));
    }
    write("m.bin", bytes_of(tokens));
    const std::vector<int64_t> counts = {std::ssize(lengths), std::ssize(documents)};
    const std::string bytes = std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17) + static_cast<char>(type) +
                              bytes_of(counts) + bytes_of(lengths) + bytes_of(begins) + bytes_of(documents);
    write("m.idx", bytes);
    return bytes;
  }
  Choice choice(const std::string& name, const Options& more = {}) const {
    Choice choice = {"tokens", more};
    choice.options["files"] = path(name);
    return resolve(choice, specs::data_specs().at("tokens").options, "data");
  }
  std::unique_ptr<DataSource> source(const std::string& name = "t.bin", const Options& more = {},
                                     int64_t vocabulary = 1000) const {
    return make_source(choice(name, more), {{Kind::tokens, {10}, vocabulary}, at::kFloat, 1});
  }
};

}  // namespace shardmark
