#pragma once
// Turns the log-mel spectrograms of recordings into vectors, as Whisper does (Radford et al. 2022, section
// 2.2): two convolutions with GELU, and sinusoidal positions.

#include <array>
#include <string_view>

#include <torch/types.h>

#include "models/config/layer_types.h"
#include "models/embedder.h"
#include "models/embedders/frame_convolution.h"

namespace zoo {

/// The vectors of a recording of `n_frames` frames: ⌈n_frames / 2⌉.
constexpr int64_t n_audio_vectors(int64_t n_frames) { return (n_frames + 1) / 2; }

/// (B) int64: the vectors of each recording of a batch without those of padding, ⌈frames / 2⌉; undefined if
/// the batch has no field "frames".
torch::Tensor audio_lengths(const Batch& batch);

/// (n, D) float32: Whisper's positions. Vector t is (sin(t·r_0) … sin(t·r_(D/2-1)), cos(t·r_0) …) with the
/// rates r_i = 10000^(-i / (D/2 - 1)), where Vaswani et al. 2017 have 10000^(-i / (D/2)). D must be even and
/// at least 4.
torch::Tensor audio_positions(int64_t n, int64_t d_model);

/// How many frames the recordings of a batch have.
///   padded  all have max_frames: the recordings are padded with silence, which the model reads
///   own     as many as the field "frames" says; what follows is padding, which changes nothing
enum class RecordingLength { padded, own };
constexpr auto config_names(RecordingLength) { return std::to_array<std::string_view>({"padded", "own"}); }

/// Whether vectors get positions here. Without, the layers have relative ones.
enum class AudioPositions { sinusoidal, none };
constexpr auto config_names(AudioPositions) {
  return std::to_array<std::string_view>({"sinusoidal", "none"});
}

struct AudioEmbedderOptions {
  AudioEmbedderOptions(int64_t d_model, int64_t n_mels) : d_model_(d_model), n_mels_(n_mels) {}
  FrameConvolutionOptions first() const { return {n_mels_, d_model_}; }
  FrameConvolutionOptions second() const { return FrameConvolutionOptions(d_model_, d_model_).stride(2); }

  TORCH_ARG(int64_t, d_model);
  /// M: bands of a spectrogram.
  TORCH_ARG(int64_t, n_mels);
  /// The most frames of a recording; the table of positions has half as many rows.
  TORCH_ARG(int64_t, max_frames) = 3000;
  TORCH_ARG(RecordingLength, length) = RecordingLength::padded;
  TORCH_ARG(AudioPositions, positions) = AudioPositions::sinusoidal;
  /// Makes positions that are found in the vectors; null: there are none.
  TORCH_ARG(MakeFoundPositions, found_positions) = nullptr;
  /// Probability of dropping an element of the vectors.
  TORCH_ARG(double, dropout) = 0.0;
};

/// GELU(conv₂(GELU(conv₁(x)))) + positions. Both convolutions read three frames, and the second one has
/// stride 2.
class AudioEmbedderImpl : public Cloneable<AudioEmbedderImpl, EmbedderImpl> {
 public:
  explicit AudioEmbedderImpl(const AudioEmbedderOptions& options);
  /// Embeds the field "spectrograms" (B, M, N) of the batch: (B, T, D) with T = ⌈N/2⌉. With
  /// RecordingLength::own, the field "frames" says how long each row is, and the vectors of a row do not
  /// depend on what follows. Throws DataError if N is more than max_frames, or with RecordingLength::padded
  /// another number, and c10::Error for another number of bands.
  Embedded forward(const Batch& batch) override;
  void pretty_print(std::ostream& stream) const override;

  AudioEmbedderOptions options;
  FrameConvolution first{nullptr}, second{nullptr};
  /// (⌈max_frames/2⌉, D): audio_positions(). A buffer, which a checkpoint has and no training changes;
  /// undefined with AudioPositions::none.
  torch::Tensor positions;
  std::shared_ptr<FoundPositionsImpl> found_positions;  // or null

 private:
  void check_frames(int64_t n_frames) const;
};
TORCH_MODULE(AudioEmbedder);

/// Adds the cost of an AudioEmbedder with path `name` for `batch_size` recordings of `n_frames` frames.
void count_audio_embedder(CostAccount& account, const std::string& name, const AudioEmbedderOptions& options,
                          int64_t batch_size, int64_t n_frames);

}  // namespace zoo
