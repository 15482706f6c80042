#pragma once
// The tasks there are. Each makes what its vocabulary lacks from the training data.

#include <memory>
#include <string>
#include <vector>

#include "training/tasks/task.h"

namespace zoo {

/// Next-token prediction over a stream of text, by a decoder or by an encoder-decoder whose encoder reads the
/// first part of each window.
std::unique_ptr<Task> make_language_modeling(const Experiment& experiment, Vocabulary vocabulary);
/// Hidden tokens, found again by an encoder (Devlin et al. 2019).
std::unique_ptr<Task> make_masked_language_modeling(const Experiment& experiment, Vocabulary vocabulary);
/// Translation and whatever else turns one line into another, by an encoder-decoder or a decoder.
std::unique_ptr<Task> make_text_to_text(const Experiment& experiment, Vocabulary vocabulary);
/// A class for a text: by an encoder at its class token, by a decoder at its last token, by an
/// encoder-decoder that writes the name of the class.
std::unique_ptr<Task> make_text_classification(const Experiment& experiment, Vocabulary vocabulary);

/// A tokenizer over texts in memory, for a task to begin with.
std::shared_ptr<const Tokenizer> make_tokenizer_for(
    const TokenizerConfig& config, SpecialTokenSet special,
    const std::vector<const std::vector<std::string>*>& corpora);

}  // namespace zoo
