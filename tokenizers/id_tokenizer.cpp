#include "tokenizers/id_tokenizer.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

[[noreturn]] void fail_without_tokenizer() {
  throw DataError(
      "the model has no tokenizer, so it reads no text: give token ids (--prompt-ids), or put the files of "
      "its tokenizer beside its weights");
}

}  // namespace

IdTokenizer::IdTokenizer(int64_t vocab_size, SpecialTokens special)
    : vocab_size_(vocab_size), special_(std::move(special)) {
  auto named = special_.other_ends;
  for (const int64_t id : {special_.pad, special_.unk, special_.bos, special_.eos, special_.mask,
                           special_.cls, special_.sep, special_.start})
    named.push_back(id);
  for (const int64_t id : named) {
    if (id >= 0) check_id(id, vocab_size_);
  }
}

TokenIds IdTokenizer::encode(std::string_view) const { fail_without_tokenizer(); }

std::string IdTokenizer::decode(std::span<const int64_t> ids) const {
  for (const int64_t id : ids) check_id(id, vocab_size_);
  return {};
}

TokenText IdTokenizer::token_text(int64_t) const { fail_without_tokenizer(); }

std::string IdTokenizer::label(int64_t id) const {
  check_id(id, vocab_size_);
  return fmt::format("<{}>", id);
}

void IdTokenizer::save(const std::filesystem::path& run_dir) const {
  write_tokenizer_file(run_dir, {.type = TokenizerKind::hub,
                                 .special = special_,
                                 .symbols = {},
                                 .model_sha256 = {},
                                 .vocab_size = vocab_size_});
}

}  // namespace zoo
