#pragma once
// What a foreign directory says of its tokens and of how its model generates.

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "data/text/tokenizer.h"
#include "generation/generation_config.h"
#include "interop/rules/foreign_config.h"

namespace zoo {

/// What generation_config.json says, or else config.json, as older versions of transformers wrote it.
struct ForeignGeneration {
  GenerationConfig options;
  int64_t bos = -1, pad = -1, start = -1;  // -1: not given
  std::vector<int64_t> ends;               // end tokens
};

/// `files`: the directory's small files. `config`: config.json; the keys that belong to generation are
/// accounted for. Throws CheckpointError.
ForeignGeneration read_generation(const std::filesystem::path& dir,
                                  const std::map<std::string, std::string>& files, ForeignConfig& config);

/// The tokenizer of the directory, with the tokens as it says; without files of one, what knows ids alone
/// (data/text/id_tokenizer.h). `vocab_size`: of the model. Throws CheckpointError.
std::shared_ptr<const Tokenizer> read_tokenizer(const std::filesystem::path& dir,
                                                const std::map<std::string, std::string>& files,
                                                const ForeignGeneration& generation, int64_t vocab_size);

}  // namespace zoo
