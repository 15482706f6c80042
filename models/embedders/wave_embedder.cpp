#include "models/embedders/wave_embedder.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>

#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

constexpr double kNormEps = 1e-5;

LinearOptions projection_options(const WaveEmbedderOptions& options) {
  return {options.n_features(), options.d_model()};
}

}  // namespace

int64_t WaveEmbedderOptions::total_stride() const {
  int64_t stride = 1;
  for (const auto& convolution : convolutions_) stride *= convolution.stride();
  return stride;
}

int64_t WaveEmbedderOptions::receptive_field() const {
  int64_t field = 1;
  for (const auto& convolution : std::views::reverse(convolutions_))
    field = (field - 1) * convolution.stride() + convolution.kernel_size();
  return field;
}

int64_t WaveEmbedderOptions::n_vectors(int64_t n_samples) const {
  int64_t n = std::max(n_samples, receptive_field());
  for (const auto& convolution : convolutions_) n = convolution.output_size(n);
  return n;
}

torch::Tensor wave_lengths(const WaveEmbedderOptions& options, const Batch& batch) {
  const auto found = batch.fields.find(fields::kSampleCounts);
  if (found == batch.fields.end()) return {};
  auto n = found->second.clamp_min(options.receptive_field());
  for (const auto& convolution : options.convolutions())
    n = torch::floor_divide(n - convolution.kernel_size(), convolution.stride()) + 1;
  return n;
}

RecordingNormImpl::RecordingNormImpl(int64_t n_channels) : n_channels_(n_channels) {
  weight = register_parameter("weight", torch::ones({n_channels}, parameter_options()));
  bias = register_parameter("bias", torch::zeros({n_channels}, parameter_options()));
}

torch::Tensor RecordingNormImpl::forward(const torch::Tensor& x, const torch::Tensor& lengths) {
  if (!lengths.defined()) return torch::group_norm(x, n_channels_, weight, bias, kNormEps);
  const auto own = lengths.to(torch::kCPU, torch::kInt64).contiguous();
  std::vector<torch::Tensor> rows;
  for (int64_t b = 0; b < x.size(0); ++b) {
    const int64_t n = own.const_data_ptr<int64_t>()[b];
    const auto row = x.narrow(0, b, 1).narrow(2, 0, n).contiguous();
    rows.push_back(torch::constant_pad_nd(torch::group_norm(row, n_channels_, weight, bias, kNormEps),
                                          {0, x.size(2) - n}));
  }
  return torch::cat(rows);
}

void RecordingNormImpl::pretty_print(std::ostream& stream) const {
  stream << Description("RecordingNorm").add("n_channels", n_channels_).add("eps", kNormEps);
}

WaveEmbedderImpl::WaveEmbedderImpl(const WaveEmbedderOptions& options_) : options(options_) {
  torch::nn::ModuleList convolution_list, norm_list;
  for (const auto& convolution : options.convolutions()) {
    convolution_list->push_back(convolutions.emplace_back(convolution));
    if (options.norm() == WaveNorm::each)
      norm_list->push_back(norms.emplace_back(NormOptions(convolution.n_outputs()).eps(kNormEps)));
  }
  register_module("convolutions", convolution_list);
  if (options.norm() == WaveNorm::each)
    register_module("norms", norm_list);
  else
    first_norm = register_module("first_norm", RecordingNorm(options.convolutions().front().n_outputs()));
  if (options.feature_norm()) feature_norm = register_module("feature_norm", Norm(*options.feature_norm()));
  projection = register_module("projection", Linear(projection_options(options)));
  if (options.masks()) {
    mask_vector = register_parameter(
        "mask_vector", drawn_tensor({options.d_model()}, [](torch::Tensor& values) { values.uniform_(); }));
  }
  if (options.found_positions())
    found_positions = register_module("found_positions", options.found_positions()());
  if (options.embedding_norm())
    embedding_norm = register_module("embedding_norm", Norm(*options.embedding_norm()));
}

torch::Tensor WaveEmbedderImpl::features(const torch::Tensor& samples, torch::Tensor& lengths) {
  const int64_t least = options.receptive_field();
  auto x = samples.unsqueeze(1);  // (B, 1, N)
  // A recording that is shorter than what one vector reads is followed by silence.
  if (lengths.defined()) {
    const auto places = torch::arange(x.size(2), lengths.options());
    x = x.masked_fill((places >= lengths.unsqueeze(1)).unsqueeze(1), 0);
  }
  if (x.size(2) < least) x = torch::constant_pad_nd(x, {0, least - x.size(2)});
  if (lengths.defined()) lengths = lengths.clamp_min(least);
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const auto& convolution = convolutions[i]->options;
    x = convolutions[i](x);
    if (lengths.defined())
      lengths = torch::floor_divide(lengths - convolution.kernel_size(), convolution.stride()) + 1;
    if (first_norm && i == 0) x = first_norm(x, lengths);
    if (!norms.empty()) x = norms[i](x.transpose(1, 2).contiguous()).transpose(1, 2);
    x = gelu(x.contiguous(), Phi::exact);
  }
  return x.transpose(1, 2).contiguous();
}

Embedded WaveEmbedderImpl::forward(const Batch& batch) {
  const auto& samples = batch.field(fields::kSamples);
  TORCH_CHECK(samples.dim() == 2, "samples must have the sizes B x N, not ", samples.sizes());
  const auto counts = batch.fields.find(fields::kSampleCounts);
  auto lengths = counts == batch.fields.end() ? torch::Tensor() : counts->second;
  auto x = features(samples, lengths);
  if (feature_norm) x = feature_norm(x);
  x = dropout(projection(x), is_training() ? options.feature_dropout() : 0.0);
  if (is_training() && options.masks() && options.masks()->active)
    x = with_hidden_features(x, lengths, mask_vector, *options.masks(), draw_row_seed());
  if (found_positions) x = with_found_positions(*found_positions, x, lengths);
  if (embedding_norm) x = embedding_norm(x);
  return {.vectors = dropout(x, is_training() ? options.dropout() : 0.0), .lengths = lengths};
}

void WaveEmbedderImpl::pretty_print(std::ostream& stream) const {
  stream << Description("WaveEmbedder")
                .add("d_model", options.d_model())
                .add("norm", options.norm())
                .add("receptive_field", options.receptive_field())
                .add("total_stride", options.total_stride())
                .add("dropout", options.dropout());
}

void count_wave_embedder(CostAccount& account, const std::string& name, const WaveEmbedderOptions& options,
                         int64_t batch_size, int64_t n_samples) {
  int64_t n = std::max(n_samples, options.receptive_field());
  for (size_t i = 0; i < options.convolutions().size(); ++i) {
    const auto& convolution = options.convolutions()[i];
    n = convolution.output_size(n);
    const auto n_outputs = static_cast<double>(batch_size * n);
    const auto number = static_cast<int64_t>(i);
    count_frame_convolution(account, account.path(name, "convolutions", number), convolution, n_outputs);
    const NormOptions norm(convolution.n_outputs());
    if (options.norm() == WaveNorm::each)
      count_norms(account, account.path(name, "norms", number), norm, 1, n_outputs);
    else if (i == 0)
      count_norms(account, account.path(name, "first_norm"), norm, 1, n_outputs);
  }
  const auto n_vectors = static_cast<double>(batch_size * n);
  if (options.feature_norm())
    count_norms(account, account.path(name, "feature_norm"), *options.feature_norm(), 1, n_vectors);
  count_linear(account, account.path(name, "projection"), "linear", projection_options(options), n_vectors);
  if (options.embedding_norm())
    count_norms(account, account.path(name, "embedding_norm"), *options.embedding_norm(), 1, n_vectors);
}

}  // namespace zoo
