#include "interop/foreign_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizers/hub_tokenizer.h"
#include "tokenizers/id_tokenizer.h"

namespace zoo {

namespace fs = std::filesystem;

std::shared_ptr<const Tokenizer> read_tokenizer(const fs::path& dir,
                                                const std::map<std::string, std::string>& files,
                                                const ForeignGeneration& generation, int64_t vocab_size,
                                                std::optional<int64_t> pad) {
  try {
    const bool has_texts = has_vocabulary(files);
    auto special = has_texts ? hub_special_tokens(files) : SpecialTokens{};
    if (generation.bos >= 0) special.bos = generation.bos;
    if (generation.pad >= 0) special.pad = generation.pad;
    if (pad) special.pad = *pad;
    special.start = generation.start;
    const auto& ends = generation.ends;
    if (!ends.empty() && std::ranges::find(ends, special.eos) == ends.end()) special.eos = ends.front();
    for (const int64_t id : ends) {
      if (id != special.eos) special.other_ends.push_back(id);
    }
    if (!has_texts) return std::make_shared<IdTokenizer>(vocab_size, special);
    return make_hub_tokenizer(files, special);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", dir.string(), error.what()));
  }
}

}  // namespace zoo
