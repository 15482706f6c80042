#pragma once
// Turns the samples of recordings into vectors, as wav2vec 2.0 does (Baevski et al. 2020, section 2): a stack
// of convolutions, a linear map of what they find, and positions that are found in these vectors.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "layers/weights/linear.h"
#include "layers/weights/norm.h"
#include "models/config/layer_types.h"
#include "models/embedder.h"
#include "models/embedders/feature_masks.h"
#include "models/embedders/frame_convolution.h"

namespace zoo {

/// The norms behind the convolutions, before their activation.
///   first  behind the first one: each channel over the moments of a recording (torch.nn.GroupNorm with a
///          group for each channel)
///   each   behind each of them: each moment over its channels
enum class WaveNorm { first, each };
constexpr auto config_names(WaveNorm) { return std::to_array<std::string_view>({"first", "each"}); }

struct WaveEmbedderOptions {
  WaveEmbedderOptions(int64_t d_model, std::vector<FrameConvolutionOptions> convolutions)
      : d_model_(d_model), convolutions_(std::move(convolutions)) {}
  /// The samples from one vector to the next.
  int64_t total_stride() const;
  /// The samples that one vector reads.
  int64_t receptive_field() const;
  /// The vectors of a recording of `n_samples`; at least one.
  int64_t n_vectors(int64_t n_samples) const;
  /// The fewest samples of a recording of `n` vectors.
  int64_t n_samples(int64_t n) const { return (n - 1) * total_stride() + receptive_field(); }
  /// Width of what the convolutions find.
  int64_t n_features() const { return convolutions_.back().n_outputs(); }

  TORCH_ARG(int64_t, d_model);
  /// At least one; the first one reads one number of a sample. Without zeros around a recording.
  TORCH_ARG(std::vector<FrameConvolutionOptions>, convolutions);
  TORCH_ARG(WaveNorm, norm) = WaveNorm::first;
  /// Before the linear map; absent: none.
  TORCH_ARG(std::optional<NormOptions>, feature_norm) = std::nullopt;
  /// Probability of dropping an element of the linear map's output.
  TORCH_ARG(double, feature_dropout) = 0.0;
  /// What training hides; absent: nothing, and there is no vector for it.
  TORCH_ARG(std::optional<FeatureMasks>, masks) = std::nullopt;
  /// Makes positions that are found in the vectors; null: there are none.
  TORCH_ARG(MakeFoundPositions, found_positions) = nullptr;
  /// Behind the positions; absent: none.
  TORCH_ARG(std::optional<NormOptions>, embedding_norm) = std::nullopt;
  /// Probability of dropping an element of the vectors.
  TORCH_ARG(double, dropout) = 0.0;
};

/// Each channel of a recording gets the mean 0 and the deviation 1 over its moments, then a gain and a bias.
/// What follows a recording changes nothing, unlike in transformers, which reads it in a batch.
class RecordingNormImpl : public Cloneable<RecordingNormImpl> {
 public:
  explicit RecordingNormImpl(int64_t n_channels);
  /// x: (B, C, N); lengths: (B) int64, undefined = all N. Zeros where there is padding.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& lengths);
  auto arguments() const { return std::tuple(n_channels_); }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor weight, bias;  // (C) each

 private:
  int64_t n_channels_;
};
TORCH_MODULE(RecordingNorm);

class WaveEmbedderImpl : public Cloneable<WaveEmbedderImpl, EmbedderImpl> {
 public:
  explicit WaveEmbedderImpl(const WaveEmbedderOptions& options);
  /// Embeds the field "samples" (B, N) of the batch: (B, T, D) with T = options.n_vectors(N). The field
  /// "sample_counts" says how long each row is, and the vectors of a row do not depend on what follows. A
  /// recording that is shorter than the receptive field is read as if silence followed it.
  Embedded forward(const Batch& batch) override;
  void pretty_print(std::ostream& stream) const override;

  WaveEmbedderOptions options;
  std::vector<FrameConvolution> convolutions;
  RecordingNorm first_norm{nullptr};  // WaveNorm::first
  std::vector<Norm> norms;            // WaveNorm::each
  Norm feature_norm{nullptr};
  Linear projection{nullptr};  // C → D
  torch::Tensor mask_vector;   // (D): stands for hidden moments; undefined without masks
  std::shared_ptr<FoundPositionsImpl> found_positions;
  Norm embedding_norm{nullptr};

 private:
  /// (B, T, C), and the vectors of each row in `lengths`, which was the samples of each row.
  torch::Tensor features(const torch::Tensor& samples, torch::Tensor& lengths);
};
TORCH_MODULE(WaveEmbedder);

/// (B) int64: the vectors of each recording of a batch without those of padding; undefined if the batch has
/// no field "sample_counts".
torch::Tensor wave_lengths(const WaveEmbedderOptions& options, const Batch& batch);

/// Adds the cost of a WaveEmbedder with path `name`, but its positions, for `batch_size` recordings of
/// `n_samples`.
void count_wave_embedder(CostAccount& account, const std::string& name, const WaveEmbedderOptions& options,
                         int64_t batch_size, int64_t n_samples);

}  // namespace zoo
