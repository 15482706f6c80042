#pragma once
// The tokenizer and the chat template of whatever holds a model, without the model. `base`: of an adapter of
// PEFT, see open_foreign_source().

#include <filesystem>
#include <memory>

#include "text/chat_template.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokenizer of a run, of a directory of the Hub (open_tokenizer()), or of a GGUF file. Throws
/// CheckpointError for a run or a GGUF file, DataError for a directory of the Hub.
std::unique_ptr<Tokenizer> open_stored_tokenizer(const std::filesystem::path& path,
                                                 const std::filesystem::path& base = {});

/// The chat template of a run, of a directory of the Hub (read_chat_template()), or of a GGUF file. Throws
/// DataError, CheckpointError.
ChatTemplate open_stored_chat_template(const std::filesystem::path& path,
                                       const std::filesystem::path& base = {});

}  // namespace zoo
