#pragma once
// What a masked language model (BERT) puts in the place of `<mask>`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"
#include "generation/generator.h"
#include "models/model.h"

namespace zoo {

/// One token as a person would write it down: "love"; "-ly" for letters that go on with a word, where the
/// vocabulary tells them from a word of their own; "␣" for a blank, else the label of what cannot be seen.
std::string shown_alone(const Tokenizer& tokenizer, int64_t id);

/// A token for one mask.
struct MaskCandidate {
  int64_t id = -1;
  std::string text;        // what it adds to a text
  std::string shown;       // see shown_alone()
  double probability = 0;  // among the whole vocabulary
};

struct FilledMasks {
  TokenIds prompt_ids;                            // with the mask tokens
  std::vector<std::vector<MaskCandidate>> masks;  // the likeliest for each mask, best first
  /// The likeliest ways to fill all masks, best first: the whole text, and ids and logprobs of the masks in
  /// their order. Masks are filled independently of each other, so score is the sum of the logprobs.
  std::vector<Output> outputs;
};

struct FillMaskOptions {
  int64_t candidates = 5;    // for each mask, and outputs; ≥ 1
  int64_t max_length = 512;  // most tokens that the model reads, with the `<cls>` and `<sep>` around the text
};

/// Fills every `<mask>` of `text`. `model` was made with Head::masked_language_modeling. Throws DataError
/// where there is no mask or the text is too long, and as encode_masked() does; CheckpointError where the
/// model's logits are NaN.
FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, std::string_view text,
                       const FillMaskOptions& options = {});
FilledMasks fill_masks(Model& model, const Tokenizer& tokenizer, const TokenIds& prompt,
                       const FillMaskOptions& options = {});

}  // namespace zoo
