#pragma once
// Where a model looks while it reads or writes a text: every weight of every attention, with the tokens that
// they belong to.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "data/text/tokenizer.h"
#include "models/model.h"
#include "training/runs/run.h"
#include "training/tasks/experiment.h"

namespace zoo {

enum class AttentionKind { encoder, decoder, cross };
constexpr auto config_names(AttentionKind) {
  return std::to_array<std::string_view>({"encoder", "decoder", "cross"});
}

/// One attention: row t holds the weights of query token t over the S key tokens.
struct AttentionLayer {
  AttentionKind kind;
  int64_t layer;          // from 0, within its kind
  torch::Tensor weights;  // (H, T, S) float on the CPU; rows sum to 1
};

struct AttentionReport {
  std::string name = {};    // of the run; may be empty
  std::string text = {};    // as it was given
  std::string target = {};  // of a model that answers: what was given, or what it wrote; else empty
  /// Labels of the tokens that the encoder reads, or the decoder where there is no encoder, special ones
  /// included.
  std::vector<std::string> source_tokens = {};
  /// Labels of the tokens that the decoder of an encoder-decoder reads, <bos> first; else empty.
  std::vector<std::string> target_tokens = {};
  /// Labels of what is to be written at each of the target tokens: the next one, at last <eos>.
  std::vector<std::string> target_next = {};
  std::vector<AttentionLayer> layers = {};  // encoder, decoder, cross; each from the first layer to the last

  /// Whether there is a target, given or written.
  bool answers() const { return !target.empty() || !target_tokens.empty(); }
  /// The tokens of a map's rows (T) and columns (S).
  const std::vector<std::string>& row_tokens(AttentionKind kind) const;
  const std::vector<std::string>& column_tokens(AttentionKind kind) const;
};

/// How a text stands before a model, as in training (data/batch_source.h).
enum class TextLayout {
  tokens,               // language modelling
  tokens_eos,           // classification by a decoder
  cls_tokens_sep,       // encoders; <mask> in the text is the mask token where there is one
  source_and_target,    // encoder_decoder: tokens and eos; its decoder reads bos and tokens
  question_and_answer,  // a decoder that answers: tokens, eos and the answer's tokens in one sequence
};
TextLayout text_layout(const Experiment& experiment);

struct AttentionRequest {
  TextLayout layout = TextLayout::tokens;
  std::string text = {};
  /// For source_and_target and question_and_answer; default: what the model writes, greedily.
  std::optional<std::string> target = {};
};

/// Runs `model` once over the text with teacher forcing. Throws DataError where the text has no tokens,
/// cannot be encoded or is longer than the model reads, UsageError for a target that the model has no use
/// for.
AttentionReport attention_report(Model& model, const Tokenizer& tokenizer, const AttentionRequest& request);
/// The same for a trained model.
AttentionReport attention_report(const Run& run, const std::string& text,
                                 const std::optional<std::string>& target = {});

/// One document, as `zoo attention --json` prints it:
///   name, text, target                        strings; target is null where there is none
///   source_tokens, target_tokens, target_next lists of strings, as in AttentionReport
///   layers                                    list of {"kind": "encoder"|"decoder"|"cross", "layer": from 0,
///                                             "heads": H × T × S weights, rounded to six digits after the
///                                             point}
///   heads                                     list of {"kind", "layer", "head": from 0, "entropy",
///                                             "distance", "first", "previous", "itself",
///                                             "alignment_error"}, one a head, as in HeadStatistics
///                                             (attention_statistics.h); null for what a head has not
///   rollout                                   list of {"kind", "layer", "rows": T × S}, as in Rollout
///                                             (attention_rollout.h), rounded like the weights
/// Rows and columns of "encoder" are source_tokens; of "cross", target_tokens and source_tokens; of
/// "decoder", target_tokens, or source_tokens where there are no target tokens.
std::string to_json(const AttentionReport& report);

}  // namespace zoo
