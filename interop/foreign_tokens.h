#pragma once
// The tokenizer of a foreign directory.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "interop/foreign_generation.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokenizer of the directory, with the tokens as it says; without files of one, what knows ids alone
/// (tokenizers/id_tokenizer.h). `vocab_size`: of the model. `pad`: its padding, -1 if it has none, where the
/// tokenizer's does not count. Throws CheckpointError.
std::shared_ptr<const Tokenizer> read_tokenizer(const std::filesystem::path& dir,
                                                const std::map<std::string, std::string>& files,
                                                const ForeignGeneration& generation, int64_t vocab_size,
                                                std::optional<int64_t> pad = {});

}  // namespace zoo
