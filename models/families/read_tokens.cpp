#include "models/families/read_tokens.h"

#include <torch/types.h>

namespace zoo {

torch::Tensor read_tokens(DecoderModules modules, const TokenBatch& tokens, DecodingState& state,
                          const LogitsAt& at) {
  const auto range = state.read(tokens);
  const auto hidden = modules.stack({.x = modules.embedder({.ids = tokens.ids, .range = range}),
                                     .mask = Mask::causal(),
                                     .state = &state,
                                     .range = range});
  return modules.head->project(modules.head->prepare(at.select(hidden, range)));
}

}  // namespace zoo
