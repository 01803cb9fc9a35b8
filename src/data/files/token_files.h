// Opens the files of data `tokens` and checks them before the first step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/files/token_file.h"
#include "schema/choice.h"

namespace shardmark {

// Returns the files in the order of their sorted paths. `options` are those of the resolved choice. Throws
// UsageError if there is no file, if one is damaged, if one has tokens outside the vocabulary, or if the
// documents of one cannot be told apart as the options require. At most 8 million tokens of all files are
// checked, and more only to look for the token that begins or ends a document.
std::vector<TokenFile> open_token_files(const Options& options, int64_t vocabulary,
                                        const std::string& folder);

// Reads tokens from `first` on. Throws UsageError if one of them is not in the vocabulary. On a GPU, a token
// without a row in the model's tables would destroy the context without a hint to its position.
void read_tokens(const TokenFile& file, int64_t vocabulary, int64_t first, std::span<int64_t> tokens);

}  // namespace shardmark
