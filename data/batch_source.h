#pragma once
// Batches in an order that is a pure function of (seed, epoch, index): a run that is killed and resumed sees
// exactly what it would have seen. All tensors are int64 on the CPU.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/token_store.h"
#include "data/tokenizer.h"
#include "models/batch.h"

namespace zoo {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// How many batches epoch `epoch` (from 0) has; at least 1. May differ between epochs.
  virtual int64_t n_batches(int64_t epoch) = 0;
  /// Batch `index` of epoch `epoch`. Same arguments, same batch, whatever was asked before. Throws
  /// std::out_of_range. One caller at a time: the order of the newest epochs is kept.
  virtual Batch batch(int64_t epoch, int64_t index) = 0;
};

/// A place in the order of a source: of the next batch to read.
struct BatchPosition {
  int64_t epoch = 0, index = 0;
};

/// Batches in a row, and where each was.
struct BatchSequence {
  std::vector<Batch> batches;
  std::vector<BatchPosition> positions;
};
/// The `count` batches from `position`, which moves on.
BatchSequence next_batches(BatchSource& source, BatchPosition& position, int64_t count);

/// How examples become batches. An order does not depend on the batch size where nothing is bucketed: four
/// batches of 8 hold the examples of one of 32. Shuffled, a last batch that is not full is left out unless it
/// is the only one (with batch_tokens there is no such thing as full); sequential, it is kept, and by_length
/// does nothing.
struct BatchOptions {
  int64_t batch_size = 32;              // sequences
  std::optional<int64_t> batch_tokens;  // instead: at most this many padded tokens on the longer side
  uint64_t seed = 0;
  enum class Order { shuffled, sequential } order = Order::shuffled;  // sequential for evaluation
  enum class Bucketing { by_length, none } bucketing = Bucketing::by_length;
};

// Each of the following throws DataError where the data is empty or the vocabulary lacks a special token it
// needs.

/// Next-token prediction over a stream of tokens cut into windows of `length`. Shuffled: each epoch starts at
/// another offset and visits its windows in random order. Sequential: windows from the start, the last one
/// shorter (and a batch of its own). The first `prefix_length` (1 … length) tokens of a window are read
/// alone, the others predicted too; windows overlap so that every token but the stream's first
/// `prefix_length` is predicted once. A stream shorter than `length` is one window.
std::unique_ptr<BatchSource> language_modeling_batches(TokenStore stream, int64_t length,
                                                       int64_t prefix_length, const BatchOptions& options);

/// The same windows for an encoder-decoder, whose targets are the same tokens: the encoder reads the prefix
/// and eos, the decoder bos and what follows.
std::unique_ptr<BatchSource> prefix_language_modeling_batches(TokenStore stream, int64_t length,
                                                              int64_t prefix_length,
                                                              const SpecialTokens& special,
                                                              const BatchOptions& options);

/// What masked language modelling hides: see DataConfig.
struct MaskingOptions {
  double probability = 0.15, replace = 0.8, random = 0.1;
};
/// Windows of a stream as `<cls> … <sep>`, `length` with these two, corrupted afresh in every epoch
/// (sequential order: always the same way). Of each window's tokens that are not special `probability` are
/// predicted, but at least one; random replacements are not special either.
std::unique_ptr<BatchSource> masked_language_modeling_batches(TokenStore stream, int64_t length,
                                                              const SpecialTokens& special,
                                                              int64_t vocab_size,
                                                              const MaskingOptions& masking,
                                                              const BatchOptions& options);

/// Pairs of sequences (rows of the two stores correspond), cut to the given lengths. Source: tokens then eos.
/// Decoder input: bos then tokens; targets: tokens then eos, at the decoder's real positions only. In one
/// stream, for a decoder alone: source, eos, target; targets: the target's tokens then eos, from the eos
/// between the two on.
enum class PairLayout { two_sides, one_stream };
std::unique_ptr<BatchSource> text_to_text_batches(TokenStore source, TokenStore target, int64_t source_length,
                                                  int64_t target_length, PairLayout layout,
                                                  const SpecialTokens& special, const BatchOptions& options);

/// Where a classifier looks: at a first `<cls>` token (the text is `<cls> … <sep>`; positions stay
/// undefined), or at the last token (`… <eos>`; positions point at it).
enum class ClassPosition { first, last };
/// One label, 0 … n_classes-1, for each row of `texts`.
std::unique_ptr<BatchSource> classification_batches(TokenStore texts, std::vector<int64_t> labels,
                                                    int64_t length, ClassPosition position,
                                                    const SpecialTokens& special,
                                                    const BatchOptions& options);

}  // namespace zoo
