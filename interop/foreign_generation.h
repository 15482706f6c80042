#pragma once
// How the model of a foreign directory generates, as transformers' GenerationConfig says it.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "generation/generation_config.h"
#include "interop/families/foreign_config.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// What generation_config.json says, or else config.json, as older versions of transformers wrote it.
struct ForeignGeneration {
  GenerationConfig options;
  int64_t bos = -1, pad = -1, start = -1;  // -1: not given
  std::vector<int64_t> ends;               // end tokens
  std::string place;                       // the file that says so
};

/// `files`: the directory's small files. `config`: config.json, whose keys that belong to generation are
/// accounted for. If there is a generation_config.json, none of them counts: it replaces them as a whole.
/// Throws CheckpointError for a key that is not known, or whose value is not supported.
ForeignGeneration read_generation(const std::filesystem::path& dir,
                                  const std::map<std::string, std::string>& files, ForeignConfig& config);

/// The keys of generation_config.json for a model that writes texts with these options and tokens: those
/// whose values differ from transformers' own. Options that transformers does not have are left out, such as
/// presence_penalty, patience, regex and json_schema.
nlohmann::ordered_json generation_json(const GenerationConfig& options, const Tokenizer& tokenizer);

}  // namespace zoo
