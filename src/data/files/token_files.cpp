// Checks token files: that their tokens are in the vocabulary, and that documents can be told apart.
#include "data/files/token_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "specs/specs.h"

namespace shardmark {
namespace {

// A piece is this many tokens; the number of pieces is for all files together.
constexpr int64_t kTokenPiece = 8192, kMostTokenPieces = 1024;

// Whether the token occurs in the file. It is usually found in the first piece; the whole file is read only
// if it does not occur.
bool has_token(const TokenFile& file, int64_t token) {
  std::vector<int64_t> tokens;
  for (int64_t first = 0; first < file.size(); first += kTokenPiece) {
    tokens.resize(static_cast<size_t>(std::min(kTokenPiece, file.size() - first)));
    file.read(first, tokens);
    if (std::find(tokens.begin(), tokens.end(), token) != tokens.end()) return true;
  }
  return false;
}

// Checks that the given tokens occur in the file. If they did not, the whole file would count as one
// document, as with `joined`, and Megatron-LM's index would be ignored in their favour.
void check_documents(const TokenFile& file, const Options& options) {
  if (options.at("documents") == "joined") return;
  const auto begin = options.at("begin").get<int64_t>(), end = options.at("end").get<int64_t>();
  if (begin < 0 && end < 0 && !file.index())
    throw UsageError("'" + file.path() +
                     "' does not say where documents begin: give data 'tokens' the token that each begins or "
                     "ends with, as begin=50256 (GPT-2) or begin=128000 (Llama 3) in llm.c's files");
  for (const auto& [option, token] : {std::pair("begin", begin), {"end", end}})
    if (token >= 0 && !has_token(file, token))
      throw UsageError(fmt::format(
          "'{}': no document {}s with token {}, which is nowhere in the file; give option '{}' of data "
          "'tokens' the token of its tokenizer{}",
          file.path(), option, token, option,
          file.index() ? ", or leave it out: Megatron-LM's index says where documents begin" : ""));
}

}  // namespace

void read_tokens(const TokenFile& file, int64_t vocabulary, int64_t first, std::span<int64_t> tokens) {
  file.read(first, tokens);
  const auto wrong = std::find_if(tokens.begin(), tokens.end(),
                                  [&](int64_t token) { return token < 0 || token >= vocabulary; });
  if (wrong != tokens.end())
    throw UsageError(
        fmt::format("'{}' ({}): token {} at position {} is not in the model's vocabulary of {}; set the "
                    "model's option 'vocabulary' above it, or choose files of another tokenizer",
                    file.path(), file.format(), *wrong, first + (wrong - tokens.begin()), vocabulary));
}

std::vector<TokenFile> open_token_files(const Options& options, int64_t vocabulary,
                                        const std::string& folder) {
  std::set<std::string> paths;
  for (const std::string& path :
       matching_files("tokens", specs::data_specs().at("tokens").files(options), folder))
    paths.insert(std::filesystem::path(path).replace_extension(".bin").string());
  std::vector<TokenFile> files;
  std::vector<int64_t> tokens;
  for (const std::string& path : paths) {
    const TokenFile& file = files.emplace_back(path);
    for_pieces(file.size(), kTokenPiece, std::max<int64_t>(2, kMostTokenPieces / std::ssize(paths)),
               [&](int64_t first, int64_t count) {
                 tokens.resize(static_cast<size_t>(count));
                 read_tokens(file, vocabulary, first, tokens);
               });
    check_documents(file, options);
  }
  return files;
}

}  // namespace shardmark
