#include "data/text/hub_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Files with a vocabulary.
constexpr auto hub_vocabularies =
    std::to_array<std::string_view>({"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model",
                                     "tokenizer.model", "sentencepiece.bpe.model"});
constexpr auto other_hub_files =
    std::to_array<std::string_view>({"merges.txt", "source.spm", "target.spm", "tokenizer_config.json",
                                     "special_tokens_map.json", "added_tokens.json"});
constexpr int64_t largest_hub_file = int64_t{64} << 20;

}  // namespace

bool is_hub_file(std::string_view name) {
  return std::ranges::find(hub_vocabularies, name) != hub_vocabularies.end() ||
         std::ranges::find(other_hub_files, name) != other_hub_files.end();
}

bool has_hub_tokenizer(const std::filesystem::path& dir) {
  if (is_there(dir / "config.yaml")) return false;
  return std::ranges::any_of(hub_vocabularies, [&](auto name) { return has_file(dir / name); });
}

HubFiles read_hub_files(const std::filesystem::path& dir, Follow follow) {
  HubFiles files;
  const auto read = [&](std::string_view name) {
    const auto path = dir / name;
    if (is_there(path)) files.emplace(name, read_file(path, follow, largest_hub_file));
  };
  std::ranges::for_each(hub_vocabularies, read);
  std::ranges::for_each(other_hub_files, read);
  return files;
}

SpecialTokens hub_special_tokens(const HubFiles&) {
  throw DataError("tokenizers of the Hub are not supported yet");
}

std::unique_ptr<Tokenizer> make_hub_tokenizer(HubFiles, const SpecialTokens&) {
  throw DataError("tokenizers of the Hub are not supported yet");
}

std::unique_ptr<Tokenizer> load_hub_tokenizer(const std::filesystem::path& run_dir) {
  throw CheckpointError(fmt::format("{}: tokenizers of the Hub are not supported yet", run_dir.string()));
}

}  // namespace zoo
