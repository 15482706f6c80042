#pragma once
// One batch of data for a model: its inputs, its targets and other tensors that its task needs.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// Sequences of token ids, padded on the right to a common length.
struct TokenBatch {
  torch::Tensor ids = {};      // (B, T) int64
  torch::Tensor lengths = {};  // (B) int64, 1 … T; undefined = every row is T long

  bool defined() const { return ids.defined(); }
  int64_t batch_size() const { return ids.size(0); }
  int64_t length() const { return ids.size(1); }
  /// The length of each row, on the CPU.
  std::vector<int64_t> row_lengths() const;
  TokenBatch to(torch::Device device) const;
};

/// The names of the fields of a Batch that tasks on images and recordings use. B images or recordings, M
/// objects in the image with most.
namespace fields {
/// (B, C, H, W) float: normalised; zeros at the right and at the bottom of images that are smaller than H ×
/// W.
inline constexpr const char* kImages = "images";
/// (B, 2) int64: height and width of each image within kImages. Without this field every image is H × W.
inline constexpr const char* kImageSizes = "image_sizes";
/// (B) int64: the numbers of the images in their data set.
inline constexpr const char* kImageNumbers = "image_numbers";
/// (B, M, 4) float: centre x, centre y, width, height of objects, as shares of the sides of the image; M ≥ 1.
inline constexpr const char* kBoxes = "boxes";
/// (B, M) int64: 0 … C-1; -1 where there is no object.
inline constexpr const char* kBoxClasses = "box_classes";
/// (B, B) int64: in each row the number of objects of every image of the batch, so that a part of the batch
/// can be weighed by the whole.
inline constexpr const char* kBatchCounts = "batch_counts";
/// (B, M, N) float: log-mel spectrograms of recordings, M bands of N frames, padded on the right.
inline constexpr const char* kSpectrograms = "spectrograms";
/// (B) int64: the frames of each recording without padding. Without this field all N frames are read.
inline constexpr const char* kFrames = "frames";
/// (B, N) float: the samples of recordings, padded with zeros on the right.
inline constexpr const char* kSamples = "samples";
/// (B) int64: the samples of each recording without padding. Without this field all N samples are read.
inline constexpr const char* kSampleCounts = "sample_counts";
/// (B, L) int64: the token ids of the transcripts of recordings, padded with -1.
inline constexpr const char* kTranscripts = "transcripts";
}  // namespace fields

/// The sizes C, H, W of an image, (C, H, W).
struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
};

/// Tensors by name, (B, …) each.
using BatchFields = std::map<std::string, torch::Tensor>;

/// A training batch of B rows. Text is in `input` and `decoder`. Everything else that a model reads or an
/// objective needs is in `fields`. The task defines what the targets mean.
struct Batch {
  /// The tokens that the encoder, or a model with one stack, reads.
  TokenBatch input = {};
  /// (B, T) int64, BERT's sentence A/B; undefined = all 0.
  torch::Tensor segments = {};
  /// The tokens that the decoder of an encoder-decoder reads (teacher forcing); else undefined.
  TokenBatch decoder = {};
  /// (N) int64 classes: token ids for language tasks, labels for classification. Or (N, C) float: 0 or 1 for
  /// each label, or numbers to regress. Undefined if the task has targets of another kind in `fields`.
  torch::Tensor targets = {};
  /// (N) int64: where each target is predicted, as the flat index b·T + t into the predicting sequence (the
  /// decoder's if there is one). Undefined: at every position in order, N = B·T; or, for classification with
  /// a pooled representation, once per row, N = B.
  torch::Tensor positions = {};
  /// (B, …) each, by name: images, boxes, numbers to regress, a teacher's logits.
  BatchFields fields = {};
  /// Tokens that the model reads, without padding; images, if the task is about images. Budgets and rates
  /// count these.
  int64_t tokens = 0;
  /// The place of row 0 among all rows of the training step, which chooses the random numbers of each row.
  int64_t first_row = 0;

  /// B. Throws c10::Error if the batch has neither tokens nor fields.
  int64_t n_rows() const;
  int64_t n_targets() const { return targets.defined() ? targets.size(0) : 0; }
  /// The field of that name. Throws c10::Error if there is none.
  const torch::Tensor& field(const std::string& name) const;
  /// The batch on `device`. A copy to a GPU is asynchronous.
  Batch to(torch::Device device) const;
  /// A batch with change(tensor) in place of every defined tensor.
  Batch changed(const std::function<torch::Tensor(const torch::Tensor&)>& change) const;
  /// All tensors in a fixed order, including undefined ones.
  std::vector<torch::Tensor> tensors() const;
};

/// Rows `first` … `first` + `count` - 1 of a batch on the CPU. The result's `tokens` is 0: tokens are counted
/// only for whole batches.
Batch take_rows(const Batch& batch, int64_t first, int64_t count);

/// Consecutive rows of a batch.
struct RowRange {
  int64_t first = 0, count = 0;

  bool has(int64_t row) const { return row >= first && row < first + count; }
};
/// The rows of part `index` of `n_parts` (1 … n_rows) parts of nearly equal size.
RowRange rows_of_part(int64_t n_rows, int64_t index, int64_t n_parts);

/// One of the parts that split_rows() makes: 0 ≤ index < n_parts.
Batch take_part(const Batch& batch, int64_t index, int64_t n_parts);

/// Splits the rows of a batch on the CPU into `n_parts` batches (1 … B) of nearly equal size, as take_rows().
std::vector<Batch> split_rows(const Batch& batch, int64_t n_parts);

}  // namespace zoo
