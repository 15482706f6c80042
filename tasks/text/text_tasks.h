#pragma once
// What the tasks on texts share.

#include <string>
#include <string_view>
#include <vector>

#include "tasks/experiment.h"
#include "tasks/task.h"
#include "tasks/task_type.h"
#include "tokenizers/tokenize.h"

namespace zoo {

/// Makes a tokenizer from a corpus, for a task without one that needs the special tokens `needed`.
/// config.special_tokens may add them, or leave out those that are not needed.
std::shared_ptr<const Tokenizer> make_tokenizer_for(const TokenizerConfig& config, SpecialTokenSet needed,
                                                    const TextReader& corpus);

/// How many bytes of a text of `text_bytes` a model predicts when it predicts the tokens `begin` … `end`
/// (excluded) of `store`, which encode the text. Only bytes that decode() gives back count, so characters
/// that became unk do not.
size_t predicted_bytes(const Tokenizer& tokenizer, const TokenStore& store, int64_t begin, int64_t end,
                       size_t text_bytes);

/// The key of bits per predicted_bytes(): "bits_per_byte", or "bits_per_decoded_byte" if the tokenizer
/// changes texts.
std::string bits_key(const Tokenizer& tokenizer);

/// How many rows have more than `limit` tokens.
int64_t n_longer_than(int64_t limit, const TokenStore& rows);
/// What to say if `n_cut` of `n` rows of a split are longer than the model reads: "3 of 40 texts for train
/// are longer than data.sequence_length, 128: their ends are cut". Nothing if none is. `what`: the rows;
/// `key`: what limits them.
std::vector<std::string> notes_on_cut(int64_t n_cut, int64_t n, std::string_view what, Split split,
                                      std::string_view key, int64_t limit);

/// `text` as one line of UTF-8: line breaks become blanks, and what is no UTF-8 becomes U+FFFD.
std::string as_line(std::string_view text);

/// The continuations of the prompts by a language model, sampled with a fixed seed as the experiment's
/// `generation:` says. The outputs do not repeat the inputs.
std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts);

}  // namespace zoo
