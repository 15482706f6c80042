#include "interop/stored_texts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/hub_tokenizer.h"
#include "interop/foreign_source.h"
#include "interop/gguf/gguf_model.h"
#include "io/gguf/gguf_file.h"

namespace zoo {

std::unique_ptr<Tokenizer> open_stored_tokenizer(const std::filesystem::path& path) {
  if (!is_gguf(path)) return open_tokenizer(directory_of_tokenizer(path));
  auto files = gguf_tokenizer(path);
  try {
    const auto special = hub_special_tokens(files);
    return make_hub_tokenizer(std::move(files), special);
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

ChatTemplate open_stored_chat_template(const std::filesystem::path& path) {
  return is_gguf(path) ? make_chat_template(gguf_tokenizer(path), path.string())
                       : read_chat_template(directory_of_tokenizer(path));
}

}  // namespace zoo
