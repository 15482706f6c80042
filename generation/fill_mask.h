#pragma once
// Fills each `<mask>` of a text with a masked language model (BERT).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generation/generator.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// One token in readable form: its text ("love"), with a hyphen ("-ly") if the vocabulary marks the token as
/// the continuation of a word. A blank is "␣". Other invisible tokens have their label.
std::string shown_alone(const Tokenizer& tokenizer, int64_t id);

/// A token for one mask.
struct MaskCandidate {
  int64_t id = -1;
  std::string text;        // the decoded token
  std::string shown;       // see shown_alone()
  double probability = 0;  // over the whole vocabulary
};

struct FilledMasks {
  TokenIds prompt_ids;                            // including the mask tokens
  std::vector<std::vector<MaskCandidate>> masks;  // the likeliest tokens for each mask, best first
  /// The likeliest ways to fill all masks, best first: the whole text, and ids and logprobs of the masks in
  /// order. Masks are filled independently of each other, so score is the sum of the logprobs.
  std::vector<Output> outputs;
};

struct FillMaskOptions {
  int64_t candidates = 5;    // for each mask; also the number of outputs; ≥ 1
  int64_t max_length = 512;  // the most tokens that the model reads, including `<cls>` and `<sep>`
};

/// Fills every `<mask>` of `text`. `model` must have HeadKind::masked_language_modeling. Throws DataError if
/// there is no mask, if the text is too long, and where Tokenizer::encode_masked() does. Throws
/// CheckpointError if the model's logits are NaN.
FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, std::string_view text,
                       const FillMaskOptions& options = {});
FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, const TokenIds& prompt,
                       const FillMaskOptions& options = {});

}  // namespace zoo
