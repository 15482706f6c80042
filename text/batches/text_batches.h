#pragma once
// Batches of texts: the inputs and targets of each task over tokens.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "data/batch_source.h"
#include "text/batches/infilling.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

// Each of these functions throws DataError if the data is empty or the vocabulary lacks a special token that
// the function needs.

/// Next-token prediction over a stream of tokens cut into windows of `length`. In shuffled order, each epoch
/// starts at another offset and visits its windows in random order. In sequential order, the windows start at
/// the beginning, and a shorter last window is a batch of its own. The first `prefix_length` (1 … length)
/// tokens of a window are only read; the others are also predicted. Windows overlap so that every token
/// except the stream's first `prefix_length` is predicted once. A stream shorter than `length` is one window.
/// With `infilling`, windows are read as copy_infilled() says; what its marks leave no room for is not read.
std::unique_ptr<BatchSource> language_modeling_batches(TokenStore stream, int64_t length,
                                                       int64_t prefix_length, const BatchOptions& options,
                                                       const Infilling& infilling = {});

/// The same windows with the same targets for an encoder-decoder. The encoder reads the prefix and eos; the
/// decoder reads bos and the tokens after the prefix.
std::unique_ptr<BatchSource> prefix_language_modeling_batches(TokenStore stream, int64_t length,
                                                              int64_t prefix_length,
                                                              const SpecialTokens& special,
                                                              const BatchOptions& options);

/// The shares of masked language modelling: see DataConfig.
struct MaskingOptions {
  double probability = 0.15, replace = 0.8, random = 0.1;
};
/// Windows of a stream as `<cls> … <sep>`, `length` tokens including these two. Each epoch hides other
/// tokens; in sequential order always the same ones. The share `probability` of each window's tokens that are
/// not special is predicted, at least one token. Random replacements are not special either.
std::unique_ptr<BatchSource> masked_language_modeling_batches(TokenStore stream, int64_t length,
                                                              const SpecialTokens& special,
                                                              int64_t vocab_size,
                                                              const MaskingOptions& masking,
                                                              const BatchOptions& options);

/// Pairs of sequences (rows of the two stores correspond), cut to the given lengths. With two_sides, the
/// encoder reads the source and eos, the decoder reads bos and the target, and the decoder's positions
/// without padding predict the target and eos. With one_stream, a decoder alone reads source, eos and target,
/// and the positions from that eos on predict the target and eos.
enum class PairLayout { two_sides, one_stream };
std::unique_ptr<BatchSource> text_to_text_batches(TokenStore source, TokenStore target, int64_t source_length,
                                                  int64_t target_length, PairLayout layout,
                                                  const SpecialTokens& special, const BatchOptions& options);

/// The token that a classifier reads: a first `<cls>` (the text is `<cls> … <sep>`; positions stay
/// undefined), or the last token (`… <eos>`; positions point at it). As in transformers, the last token is
/// the last one that is not <pad>, also if a vocabulary has one token for <eos> and <pad>.
enum class ClassPosition { first, last };
/// `targets`: one for each row of `texts`, (N) int64 or (N, C) float as Batch::targets. `frame`: what stands
/// around a text, if the vocabulary says it. Texts that are too long are cut, their frame is not.
std::unique_ptr<BatchSource> classification_batches(TokenStore texts, torch::Tensor targets, int64_t length,
                                                    ClassPosition position, const SpecialTokens& special,
                                                    const BatchOptions& options,
                                                    const std::optional<TextFrame>& frame = std::nullopt);

/// A sequence with special tokens, and for each token 0 or 1: the text to which it belongs (BERT's segments).
struct FramedPair {
  TokenIds ids, segments;
};

/// The two texts in their frame, such as <cls> first <sep> second <sep>, in at most `length` tokens (at least
/// frame.n_tokens_of_pair()). The longer text is cut first, as by the strategy "longest_first" of tokenizers,
/// each at the end frame.cut_at.
/// Segments: 0 as far as the second text, then frame.second_segment.
FramedPair frame_pair(const TokenIds& first, const TokenIds& second, int64_t length, const TextFrame& frame);

/// The numbers of tokens of two texts that are kept if there is room for `most` together.
std::pair<int64_t, int64_t> cut_longest_first(int64_t first, int64_t second, int64_t most);

/// The same for pairs of texts, rows of the two stores, as frame_pair() makes them, with their segments.
/// `pad` fills the shorter rows of a batch.
std::unique_ptr<BatchSource> pair_classification_batches(TokenStore first, TokenStore second,
                                                         torch::Tensor targets, int64_t length,
                                                         ClassPosition position, TextFrame frame, int64_t pad,
                                                         const BatchOptions& options);

/// Each row of `texts` is read from its beginning, at most `length` tokens of it. The tokens that follow a
/// token `mark` are predicted, each from the tokens before it; the marks themselves are not read.
std::unique_ptr<BatchSource> marked_token_batches(TokenStore texts, int64_t mark, int64_t length,
                                                  const SpecialTokens& special, const BatchOptions& options);

/// Each row of `texts` is read from its beginning, at most `length` tokens of it. Its answers are predicted:
/// the row of `answers` says where they begin and end, as EncodedConversation::answers. Rows whose answers
/// are beyond `length` are left out.
std::unique_ptr<BatchSource> answer_batches(TokenStore texts, TokenStore answers, int64_t length,
                                            const SpecialTokens& special, const BatchOptions& options);

}  // namespace zoo
