#pragma once
// Every attention weight of a model while it reads or writes a text, or looks at a picture, with the names of
// rows and columns.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "analysis/token_predictions.h"
#include "checkpoints/run.h"
#include "data/images/image.h"
#include "models/model.h"
#include "tasks/experiment.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

enum class AttentionKind { encoder, decoder, cross };
constexpr auto config_names(AttentionKind) {
  return std::to_array<std::string_view>({"encoder", "decoder", "cross"});
}

/// One attention module: row t of a map holds the weights of query token t over the S key tokens.
struct AttentionLayer {
  AttentionKind kind;
  int64_t layer;          // from 0, within its kind
  torch::Tensor weights;  // (H, T, S) float on the CPU; rows sum to 1
};

/// The picture that a model looks at, and the places that it makes of it.
struct AttendedImage {
  std::string file;  // as given
  Image picture;     // in colours (three channels), as in the file
  PatchGrid grid;
  Box part;  // of the picture, in its pixels: what the grid covers
  /// The classes, or the objects; each object has the number of its query.
  Prediction prediction;
};

/// The recording that a model listens to.
struct AttendedRecording {
  torch::Tensor spectrogram;  // (M, N) float on the CPU, as the model reads it: the lowest band first
  double frame_seconds = 0;   // from one frame to the next
};

/// The report of a picture has no text, target, target_next and predictions. Its source tokens are the
/// places, named "row R column C" from 0, with "class" (or "special 0", … where there are several) before
/// them; its target tokens are the object queries of a model that detects, named "query N" or "query N: LABEL
/// 0.97".
struct AttentionReport {
  std::string name = {};    // of the run; may be empty
  std::string text = {};    // as given
  std::string target = {};  // for a model that answers: the given target, or the model's output; else empty
  /// Labels of the tokens, special ones included, that the encoder reads, or the decoder without an encoder.
  std::vector<std::string> source_tokens = {};
  /// Labels of the tokens that the decoder of an encoder-decoder reads, <bos> first; else empty.
  std::vector<std::string> target_tokens = {};
  /// Labels of the token to be written at each target token: the next one, and <eos> at the end.
  std::vector<std::string> target_next = {};
  std::vector<AttentionLayer> layers = {};  // encoder, decoder, cross; each from the first layer to the last
  /// The five likeliest tokens at each target token, or at each source token where there are no target
  /// tokens: the next token, or for a masked language model the token at this position. Empty for other
  /// heads.
  TokenPredictions predictions = {};
  /// The classes of a text, the likeliest first, where the run classifies texts; else empty.
  std::vector<LabelProbability> labels = {};
  /// Of a model that says a score in place of labels (PredictedScore).
  std::optional<double> score = std::nullopt;
  std::optional<AttendedImage> image = {};          // absent for a text
  std::optional<AttendedRecording> recording = {};  // then the source tokens are times, of two frames each

  /// Whether there is a target, given or written. A picture has none.
  bool answers() const { return !image && (!target.empty() || !target_tokens.empty()); }
  /// The tokens of a map's rows (T) and columns (S).
  const std::vector<std::string>& row_tokens(AttentionKind kind) const;
  const std::vector<std::string>& column_tokens(AttentionKind kind) const;
};

struct AttentionRequest {
  TextLayout layout = TextLayout::tokens;
  std::string text = {};
  /// For source_and_target and question_and_answer; default: the model's greedy output.
  std::optional<std::string> target = {};
  /// The model's head. The report has predictions if it predicts tokens.
  HeadKind head = HeadKind::language_modeling;
};

/// Runs `model` over the text with teacher forcing: once for the maps, once for the predictions. Throws
/// DataError if the text has no tokens, cannot be encoded or is too long for the model, UsageError if there
/// is a target but the model does not answer. Every layer of the model must have maps.
AttentionReport attention_report(Model& model, const Tokenizer& tokenizer, const AttentionRequest& request);
/// The same for a trained model. UsageError also if a layer of it has no maps (why_no_maps()).
AttentionReport attention_report(const Run& run, const std::string& text,
                                 const std::optional<std::string>& target = {});

/// The labels as to_json() has them.
nlohmann::ordered_json labels_json(const AttentionReport& report);

/// The maps of the only row of `batch`, which is on the model's device. Throws CheckpointError if weights are
/// not numbers.
std::vector<AttentionLayer> attention_layers(Model& model, const Batch& batch);

/// One document, as `zoo attention --json` prints it:
///   name, text, target                        strings; target is null if there is none
///   source_tokens, target_tokens, target_next lists of strings, as in AttentionReport
///   layers                                    list of {"kind": "encoder"|"decoder"|"cross", "layer": from 0,
///                                             "heads": H × T × S weights, rounded to six digits after the
///                                             point}
///   heads                                     list of {"kind", "layer", "head": from 0, "entropy",
///                                             "distance", "first", "previous", "itself",
///                                             "alignment_error"}, one per head, as in HeadStatistics
///                                             (attention_statistics.h); null where a head has no value
///   rollout                                   list of {"kind", "layer", "rows": T × S}, as in Rollout
///                                             (attention_rollout.h), rounded like the weights
///   predictions                               for each of target_tokens, or of source_tokens if there are no
///                                             target tokens, the five likeliest tokens, the likeliest first:
///                                             list of {"token", "probability"}, as in AttentionReport; empty
///                                             if the model predicts no tokens
///   labels                                    of a classifier: list of {"label", "probability"}, the
///                                             likeliest first; absent for others
///   score                                     of a model that says a score in place of labels
/// For a recording, `text` is the file, and there is also
///   recording                                 {"frame_seconds", "spectrogram": M × N, as AttendedRecording}
/// For a picture, `text`, `target`, `target_next` and `predictions` are absent, and instead there are
///   image                                     the file, as given
///   width, height                             of the picture, in pixels
///   rows, columns                             of the grid of places
///   special                                   how many of source_tokens stand before the places
///   part                                      [x, y, width, height]: what the grid covers of the picture, in
///                                             its pixels
///   labels, score, or objects                 as in `zoo predict --json` (tasks/prediction.h); an
///                                             object also has "query", the row of target_tokens
/// Rows and columns of "encoder" are source_tokens; of "cross", target_tokens and source_tokens; of
/// "decoder", target_tokens, or source_tokens if there are no target tokens.
std::string to_json(const AttentionReport& report);

}  // namespace zoo
