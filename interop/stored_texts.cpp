#include "interop/stored_texts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "interop/foreign_source.h"
#include "interop/gguf/gguf_model.h"
#include "io/formats/gguf_file.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {

std::unique_ptr<Tokenizer> open_stored_tokenizer(const std::filesystem::path& path,
                                                 const std::filesystem::path& base) {
  const auto place = place_of_tokenizer(path, base);
  if (!is_gguf(place)) return open_tokenizer(place);
  auto files = gguf_tokenizer(place);
  try {
    const auto special = hub_special_tokens(files);
    return make_hub_tokenizer(std::move(files), special);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", place.string(), error.what()));
  }
}

ChatTemplate open_stored_chat_template(const std::filesystem::path& path, const std::filesystem::path& base) {
  const auto place = place_of_tokenizer(path, base);
  return is_gguf(place) ? make_chat_template(gguf_tokenizer(place), place.string())
                        : read_chat_template(place);
}

}  // namespace zoo
