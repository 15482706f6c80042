#include "text/token_streams.h"

#include <map>
#include <utility>
#include <vector>

#include "tokenizers/tokenize.h"

namespace zoo {

TokenStore TokenStreams::take(Split split, const Tokenizer& tokenizer, const Look& look) {
  auto& stream = streams_[static_cast<size_t>(split)];
  if (!stream) read(split, tokenizer, look);
  return *std::exchange(stream, std::nullopt);
}

void TokenStreams::read(Split split, const Tokenizer& tokenizer, const Look& look) {
  std::vector<Split> splits{split};
  if (split == Split::train && is_shared(corpus_.config(), Split::valid)) splits.push_back(Split::valid);
  std::map<Split, Tokenization> work;
  bool is_needed = look != nullptr;
  for (const auto each : splits) {
    const auto [at, is_new] =
        work.try_emplace(each, corpus_.fingerprint(each), tokenizer, RowEnding::end_of_sequence);
    is_needed = is_needed || !at->second.is_cached();
  }
  const auto add = [&](const Document& document, Split of) {
    if (look) look(document.text, of);
    if (auto& tokens = work.at(of); !tokens.is_cached()) tokens.add(document.text);
  };
  if (is_needed) corpus_.visit(splits, add);
  for (auto& [each, tokens] : work) {
    auto store = tokens.finish();
    // A split without documents is an error only where it is wanted.
    if (store.n_rows() > 0) {
      streams_[static_cast<size_t>(each)] = std::move(store);
    } else if (each == split) {
      fail_empty(corpus_.config(), split, "documents");
    }
  }
  corpus_.release();
}

}  // namespace zoo
