#include "tasks/text/text_tasks.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/text.h"
#include "generation/generator.h"

namespace zoo {
namespace {

/// Whether one of the tokens `begin` … `end` (excluded) is `id`. Reads parts of the store, because a document
/// may be a whole corpus.
bool has_token(const TokenStore& store, int64_t begin, int64_t end, int64_t id) {
  constexpr int64_t at_once = 65'536;
  for (; begin < end; begin += at_once) {
    const auto part = store.slice(begin, std::min(begin + at_once, end));
    if (std::ranges::find(part, id) != part.end()) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer_for(const TokenizerConfig& config, SpecialTokenSet needed,
                                                    const TextReader& corpus) {
  const bool all =
      config.special_tokens.value_or(needed == SpecialTokenSet::all || learns_vocabulary(config.type));
  if (needed == SpecialTokenSet::infilling) return make_tokenizer(config, needed, corpus);
  return make_tokenizer(config, all ? SpecialTokenSet::all : SpecialTokenSet::none, corpus);
}

size_t predicted_bytes(const Tokenizer& tokenizer, const TokenStore& store, int64_t begin, int64_t end,
                       size_t text_bytes) {
  const int64_t unk = tokenizer.special().unk;
  if (tokenizer.keeps_text() && (unk < 0 || !has_token(store, begin, end, unk))) return text_bytes;
  const auto decoded_bytes = [&](int64_t from, int64_t to) {
    TokenIds known = store.slice(from, to);
    std::erase(known, unk);
    return tokenizer.decode(known).size();
  };
  // A document may be a whole corpus, so parts of it are decoded. What a token gives depends on a few before
  // it, which are decoded with it and by themselves.
  constexpr int64_t at_once = 262'144, context = 64;
  size_t bytes = 0;
  for (int64_t from = begin; from < end; from += at_once) {
    const int64_t before = std::max(begin, from - context);
    bytes += decoded_bytes(before, std::min(from + at_once, end)) - decoded_bytes(before, from);
  }
  return bytes;
}

std::string bits_key(const Tokenizer& tokenizer) {
  return tokenizer.keeps_text() ? "bits_per_byte" : "bits_per_decoded_byte";
}

int64_t n_longer_than(int64_t limit, const TokenStore& rows) {
  int64_t n = 0;
  for (int64_t i = 0; i < rows.n_rows(); ++i) n += rows.row_length(i) > limit ? 1 : 0;
  return n;
}

std::vector<std::string> notes_on_cut(int64_t n_cut, int64_t n, std::string_view what, Split split,
                                      std::string_view key, int64_t limit) {
  if (n_cut == 0) return {};
  return {fmt::format("{} of {} {} for {} are longer than {}, {}: their ends are cut", n_cut, n, what,
                      name_of(split), key, limit)};
}

std::string as_line(std::string_view text) {
  std::string line;
  while (const auto bad = find_invalid_utf8(text)) {
    line.append(text.substr(0, *bad)).append("\uFFFD");
    text.remove_prefix(*bad + 1);
  }
  line += text;
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options = task.experiment().generation;
  options.num_samples = 1;
  const Generator generator(model, task.tokenizer());
  std::vector<Sample> result;
  for (const auto& generation : generator.generate(prompts, options)) {
    result.push_back(
        {.input = task.tokenizer().decode(generation.prompt_ids), .output = generation.outputs.front().text});
  }
  return result;
}

}  // namespace zoo
