// The files of data `tokens`: opened, and looked at before the first step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/files/token_file.h"
#include "schema/choice.h"

namespace shardmark {

// In the order of their sorted paths. options: of the resolved choice. UsageError: no file, a damaged one,
// one with tokens that a model of this vocabulary lacks, or one whose documents cannot be told apart as the
// options say. Of all files at most 8 million tokens are looked at, and more only for a document's first or
// last token.
std::vector<TokenFile> open_token_files(const Options& options, int64_t vocabulary,
                                        const std::string& folder);

// Tokens from `first` on. UsageError: one of them is not in the vocabulary. A token without a row in the
// model's tables would end a GPU's context, with no word of where it is.
void read_tokens(const TokenFile& file, int64_t vocabulary, int64_t first, std::span<int64_t> tokens);

}  // namespace shardmark
