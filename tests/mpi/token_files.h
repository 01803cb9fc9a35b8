// What the tests of token files share: llm.c's files, and sources of them.
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
  // Tokens 0, 3, 6 ... modulo 1000.
  template <class Token = uint16_t>
  static std::string file(int32_t magic, int32_t version, int32_t claimed, int32_t count, Token scale = 1) {
    std::vector<int32_t> header(256, 0);
    header[0] = magic, header[1] = version, header[2] = claimed;
    std::vector<Token> tokens(static_cast<size_t>(count));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(3 * i % 1000 * scale);
    return bytes_of(header) + bytes_of(tokens);
  }
  std::unique_ptr<DataSource> source(const std::string& name = "t.bin", int64_t vocabulary = 1000) const {
    const Choice choice =
        resolve({"tokens", {{"files", path(name)}}}, specs::data_specs().at("tokens").options, "data");
    return make_source(choice, {{Kind::tokens, {10}, vocabulary}, at::kFloat, 1});
  }
};

}  // namespace shardmark
