#pragma once
// The costs of the mixers of layers/mixers/, one function for each, as count_attention() in models/cost.h.
// FLOPs are those of matrix products, chunks that are filled up included.

#include <string>

#include "layers/mixers/delta_net.h"
#include "layers/mixers/linformer.h"
#include "layers/mixers/performer.h"
#include "layers/mixers/token_mlp.h"
#include "models/cost.h"

namespace zoo {

/// The use of a mixer in a model. Its cost depends on this and on its options. Only a causal mixer has a
/// state.
struct MixerUse {
  bool causal = false;
  bool rotary = false;
};

void count_linear_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                            const MixerUse& use, const AttentionShape& shape);
void count_performer(CostAccount& account, std::string name, const PerformerOptions& options,
                     const MixerUse& use, const AttentionShape& shape);
void count_delta_net(CostAccount& account, std::string name, const DeltaNetOptions& options,
                     const AttentionShape& shape);

/// The network computes `options.n_tokens` tokens for each of `d_model` channels, also for shorter rows.
void count_token_mlp(CostAccount& account, std::string name, const TokenMlpOptions& options, int64_t d_model,
                     const AttentionShape& shape);

/// E and F.
void count_position_projection(CostAccount& account, std::string name,
                               const PositionProjectionOptions& options);
/// A Linformer without E and F.
void count_linformer(CostAccount& account, std::string name, const AttentionOptions& options, int64_t n_slots,
                     const AttentionShape& shape);

}  // namespace zoo
