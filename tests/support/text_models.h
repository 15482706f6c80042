#pragma once
// Small models that read the tokens of a tokenizer.

#include <memory>

#include "tests/support/small_models.h"
#include "tokenizers/tokenizer.h"

namespace zoo::testing {

/// A token for each of sixteen letters and for the end of a line.
inline std::shared_ptr<const Tokenizer> letters(SpecialTokenSet special = SpecialTokenSet::all) {
  TokenizerConfig config;
  config.type = TokenizerKind::character;
  return make_tokenizer(config, special, [](const auto& sink) { sink("abcdefghijklmnop\n"); });
}

/// A model in training mode. Its large, untied weights make its output depend on everything that it reads. It
/// has much dropout, which must not affect generation.
inline std::shared_ptr<Model> text_model(ModelConfig config, const Tokenizer& tokenizer,
                                         HeadKind head = HeadKind::language_modeling) {
  config.init_std = 0.6;
  config.init_residual_scaling = false;
  config.tie_embeddings = false;
  config.dropout = config.attention_dropout = 0.5;
  torch::manual_seed(3);
  return initialized_model(config, {.head = head,
                                    .vocab_size = tokenizer.vocab_size(),
                                    .n_classes = head == HeadKind::classification ? 3 : 0,
                                    .start_token = tokenizer.special().bos});
}

}  // namespace zoo::testing
