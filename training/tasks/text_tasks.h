#pragma once
// The library's tasks on texts, and functions that they share.

#include <string>
#include <vector>

#include "data/text/token_store.h"
#include "models/families/families.h"
#include "training/tasks/experiment.h"
#include "training/tasks/task.h"
#include "training/tasks/task_type.h"

namespace zoo {

/// Next-token prediction over a stream of text, with a decoder, or with an encoder-decoder whose encoder
/// reads the first part of each window.
TaskType language_modeling();
/// Prediction of hidden tokens with an encoder (Devlin et al. 2019).
TaskType masked_language_modeling();
/// Translation and other tasks that turn one line into another, with an encoder-decoder or a decoder.
TaskType text_to_text();
/// Classification of texts: with an encoder at its class token, with a decoder at its last token, or with an
/// encoder-decoder that writes the name of the class.
TaskType text_classification();
/// Prediction of the marked tokens of each text with a decoder: associative recall, induction.
TaskType marked_tokens();

/// Complains unless the model's family has one of these shapes; `wanted` lists them for people.
void require_shape(const Experiment& experiment, std::initializer_list<FamilyShape> shapes,
                   std::string_view wanted, const Complain& complain);
/// Complains if `length` tokens are more than the model's positions.
void require_positions(const Experiment& experiment, std::string_view key, int64_t length,
                       const Complain& complain);
/// Complains if a key is set that belongs to another task.
void refuse_key(const Experiment& experiment, std::string_view key, bool is_set, std::string_view owner,
                const Complain& complain);

/// Makes a tokenizer from texts in memory, for a task without one that needs the special tokens `needed`.
/// config.special_tokens may add them, or leave out those that are not needed.
std::shared_ptr<const Tokenizer> make_tokenizer_for(
    const TokenizerConfig& config, SpecialTokenSet needed,
    const std::vector<const std::vector<std::string>*>& corpora);

/// How many bytes of `text` a model predicts when it predicts the tokens `begin` … `end` (excluded) of
/// `store`, which encode the text. Only bytes that decode() gives back count, so characters that became unk
/// do not.
size_t predicted_bytes(const Tokenizer& tokenizer, const TokenStore& store, int64_t begin, int64_t end,
                       std::string_view text);

/// The key of bits per predicted_bytes(): "bits_per_byte", or "bits_per_decoded_byte" if the tokenizer
/// changes texts.
std::string bits_key(const Tokenizer& tokenizer);

/// The continuations of the prompts by a language model, sampled with a fixed seed as the experiment's
/// `generation:` says. The outputs do not repeat the inputs.
std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts);

}  // namespace zoo
