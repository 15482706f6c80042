#include "tokenizers/hub/text_codec.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/file_kind.h"
#include "tokenizers/hub/old_files.h"
#include "tokenizers/hub/tiktoken.h"
#include "tokenizers/hub/tokenizer_class.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

/// The name of a file of tiktoken; empty if there is none.
std::string tiktoken_name(const std::map<std::string, std::string>& files) {
  for (const auto& [name, content] : files) {
    const bool can_be =
        has_extension(name, {".tiktoken"}) || name == "tiktoken.model" || name == "tokenizer.model";
    if (can_be && is_tiktoken_file(content)) return name;
  }
  return {};
}

bool has_sentencepiece_model(const std::map<std::string, std::string>& files) {
  return files.contains("spiece.model") || files.contains("tokenizer.model") ||
         (files.contains("source.spm") && files.contains("vocab.json"));
}

std::unique_ptr<TextCodec> codec_of(const std::map<std::string, std::string>& files,
                                    const TokenizerSettings& settings) {
  if (files.contains("tokenizer.json")) return make_json_codec(json_file(files, "tokenizer.json"), settings);
  if (const auto name = tiktoken_name(files); !name.empty())
    return make_json_codec(tokenizer_json_of_tiktoken(name, files.at(name)), settings);
  if (is_character_class(settings.type) && files.contains("vocab.json"))
    return make_character_codec(files, settings);
  if (has_sentencepiece_model(files)) return make_sentencepiece_codec(files, settings);
  if (auto document = tokenizer_json_of_old_files(files, settings); !document.is_null())
    return make_json_codec(std::move(document), settings);
  throw DataError(
      "no tokenizer: there is no tokenizer.json, vocab.txt, vocab.json with merges.txt or of "
      "Wav2Vec2CTCTokenizer, spiece.model, tokenizer.model or file of tiktoken");
}

}  // namespace

std::unique_ptr<TextCodec> make_text_codec(const std::map<std::string, std::string>& files,
                                           const TokenizerSettings& settings) {
  try {
    return codec_of(files, settings);
  } catch (const nlohmann::json::exception& e) {
    throw DataError(fmt::format("the tokenizer is damaged: {}", excerpt(e.what(), 150)));
  }
}

}  // namespace zoo
