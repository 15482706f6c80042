#include "models/embedders/audio_embedder.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

/// x (B, C, N) with zeros from frames[b] on in each row; `frames` (B) int64, or undefined = N in every row.
torch::Tensor without_padding(const torch::Tensor& x, const torch::Tensor& frames) {
  if (!frames.defined()) return x;
  const auto is_padding = torch::arange(x.size(2), frames.options()) >= frames.unsqueeze(1);  // (B, N)
  return x.masked_fill(is_padding.unsqueeze(1), 0);
}

}  // namespace

torch::Tensor audio_lengths(const Batch& batch) {
  const auto found = batch.fields.find(fields::kFrames);
  if (found == batch.fields.end()) return {};
  return torch::floor_divide(found->second + 1, 2);
}

torch::Tensor audio_positions(int64_t n, int64_t d_model) {
  TORCH_CHECK(d_model >= 4 && d_model % 2 == 0, "positions of recordings need an even width from 4 on, not ",
              d_model);
  const auto options = torch::dtype(torch::kFloat64);
  const int64_t half = d_model / 2;
  const auto rates =
      torch::exp(torch::arange(half, options) * (-std::log(10000.0) / static_cast<double>(half - 1)));
  const auto angles = torch::arange(n, options).unsqueeze(1) * rates;  // (n, D/2)
  return torch::cat({angles.sin(), angles.cos()}, 1).to(torch::kFloat32);
}

AudioEmbedderImpl::AudioEmbedderImpl(const AudioEmbedderOptions& options_) : options(options_) {
  first = register_module("first", FrameConvolution(options.first()));
  second = register_module("second", FrameConvolution(options.second()));
  if (options.found_positions())
    found_positions = register_module("found_positions", options.found_positions()());
  if (options.positions() == AudioPositions::none) return;
  const int64_t n = n_audio_vectors(options.max_frames()), d_model = options.d_model();
  positions = register_buffer("positions", drawn_tensor({n, d_model}, [&](torch::Tensor& table) {
                                table.copy_(audio_positions(n, d_model));
                              }));
}

void AudioEmbedderImpl::check_frames(int64_t n_frames) const {
  const int64_t most = options.max_frames();
  if (options.length() == RecordingLength::padded && n_frames != most) {
    throw DataError(
        fmt::format("a spectrogram has {} frames, and this model reads recordings that are padded to {} "
                    "frames: pad them, or set model.architecture.pad_to_max to false and train",
                    n_frames, most));
  }
  if (n_frames > most) {
    throw DataError(
        fmt::format("a recording of {} frames is longer than model.architecture.max_frames, {}: "
                    "cut it into shorter ones",
                    n_frames, most));
  }
}

Embedded AudioEmbedderImpl::forward(const Batch& batch) {
  const auto& spectrograms = batch.field(fields::kSpectrograms);
  TORCH_CHECK(spectrograms.dim() == 3 && spectrograms.size(1) == options.n_mels(),
              "spectrograms must have the sizes B x ", options.n_mels(), " x frames, not ",
              spectrograms.sizes());
  check_frames(spectrograms.size(2));
  const bool has_lengths = options.length() == RecordingLength::own && batch.fields.contains(fields::kFrames);
  const auto frames = has_lengths ? batch.field(fields::kFrames) : torch::Tensor();
  // The frame after the last one of a row is zero for both convolutions, as at the end of a batch.
  auto x = gelu(first(without_padding(spectrograms, frames)), Phi::exact);
  x = gelu(second(without_padding(x, frames)), Phi::exact).transpose(1, 2).contiguous();  // (B, T, D)
  if (positions.defined()) x = x + positions.narrow(0, 0, x.size(1)).to(x.scalar_type());
  const auto lengths = has_lengths ? audio_lengths(batch) : torch::Tensor();
  if (found_positions) x = with_found_positions(*found_positions, x, lengths);
  return {.vectors = dropout(x, is_training() ? options.dropout() : 0.0), .lengths = lengths};
}

void AudioEmbedderImpl::pretty_print(std::ostream& stream) const {
  stream << Description("AudioEmbedder")
                .add("d_model", options.d_model())
                .add("n_mels", options.n_mels())
                .add("max_frames", options.max_frames())
                .add("length", options.length())
                .add("positions", options.positions())
                .add("dropout", options.dropout());
}

void count_audio_embedder(CostAccount& account, const std::string& name, const AudioEmbedderOptions& options,
                          int64_t batch_size, int64_t n_frames) {
  count_frame_convolution(account, account.path(name, "first"), options.first(),
                          static_cast<double>(batch_size * n_frames));
  count_frame_convolution(account, account.path(name, "second"), options.second(),
                          static_cast<double>(batch_size * n_audio_vectors(n_frames)));
}

}  // namespace zoo
