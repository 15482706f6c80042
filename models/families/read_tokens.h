#pragma once
// The step that all generative families share.

#include "models/embedder.h"
#include "models/heads.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

/// The modules of a decoder.
struct DecoderModules {
  TokenEmbedder embedder;
  Stack stack;
  ModelHead head;
};

/// Reads `tokens` into `state`, as GenerativeModel::forward().
torch::Tensor read_tokens(DecoderModules modules, const TokenBatch& tokens, DecodingState& state,
                          const LogitsAt& at);

}  // namespace zoo
