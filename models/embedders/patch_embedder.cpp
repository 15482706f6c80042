#include "models/embedders/patch_embedder.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/dropout.h"
#include "layers/attention/positions.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

bool has_stem(const PatchEmbedderOptions& options) { return options.stem() == VitStem::convolutions; }

ConvolutionalStemOptions stem_options(const PatchEmbedderOptions& options) {
  return ConvolutionalStemOptions(options.image().channels, options.d_model(), options.patch_size())
      .n_blocks(options.stem_blocks())
      .norm(options.stem_norm());
}

LinearOptions projection_options(const PatchEmbedderOptions& options) {
  return LinearOptions(has_stem(options) ? options.d_model() : options.patch_width(), options.d_model())
      .bias(options.bias());
}

/// The part of the images that whole patches fill.
torch::Tensor whole_patches(const torch::Tensor& images, int64_t patch_size) {
  const int64_t height = images.size(2) / patch_size * patch_size,
                width = images.size(3) / patch_size * patch_size;
  return images.narrow(2, 0, height).narrow(3, 0, width);
}

}  // namespace

torch::Tensor patches_of(const torch::Tensor& images, int64_t patch_size) {
  const int64_t B = images.size(0), C = images.size(1), P = patch_size;
  const int64_t n_rows = images.size(2) / P, n_columns = images.size(3) / P;
  return whole_patches(images, P)
      .reshape({B, C, n_rows, P, n_columns, P})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({B, n_rows * n_columns, C * P * P});
}

PatchEmbedderImpl::PatchEmbedderImpl(const PatchEmbedderOptions& options_) : options(options_) {
  if (has_stem(options)) stem = register_module("stem", ConvolutionalStem(stem_options(options)));
  projection = register_module("projection", Linear(projection_options(options)));
  if (options.class_token())
    class_token =
        register_parameter("class_token", torch::zeros({1, options.d_model()}, parameter_options()));
  if (options.distillation_token())
    distillation_token =
        register_parameter("distillation_token", torch::zeros({1, options.d_model()}, parameter_options()));
  if (options.position() == Position::learned)
    positions = register_parameter("positions",
                                   torch::zeros({options.length(), options.d_model()}, parameter_options()));
  if (const auto& options_of_norm = options.norm()) norm = register_module("norm", Norm(*options_of_norm));
}

torch::Tensor PatchEmbedderImpl::patch_positions(int64_t n_rows, int64_t n_columns,
                                                 torch::Device device) const {
  if (options.position() == Position::sinusoidal)
    return grid_positions(n_rows, n_columns, options.d_model()).to(device);
  if (!positions.defined()) return {};
  const auto table = positions.slice(/*dim=*/0, /*start=*/options.n_before());
  const int64_t P = options.patch_size(), D = options.d_model();
  const int64_t table_rows = options.image().height / P, table_columns = options.image().width / P;
  if (n_rows == table_rows && n_columns == table_columns) return table;
  // As interpolate_pos_encoding() in transformers.
  const auto grid = table.view({1, table_rows, table_columns, D}).permute({0, 3, 1, 2});
  return at::upsample_bicubic2d(grid, {n_rows, n_columns}, /*align_corners=*/false)
      .permute({0, 2, 3, 1})
      .reshape({n_rows * n_columns, D});
}

/// (B, patches, C·P²), or (B, patches, D) with a stem.
torch::Tensor PatchEmbedderImpl::patch_vectors(const torch::Tensor& images) {
  if (!stem) return patches_of(images, options.patch_size());
  return stem(whole_patches(images, options.patch_size())).flatten(2).transpose(1, 2);
}

Embedded PatchEmbedderImpl::forward(const Batch& batch) {
  const auto& images = batch.field(fields::kImages);
  const int64_t n_rows = images.size(2) / options.patch_size(),
                n_columns = images.size(3) / options.patch_size();
  TORCH_CHECK(images.size(1) == options.image().channels, "images have ", images.size(1), " channels, not ",
              options.image().channels);
  TORCH_CHECK(n_rows > 0 && n_columns > 0, "images of ", images.size(2), " x ", images.size(3),
              " are smaller than a patch of ", options.patch_size());
  const auto& image = options.image();
  if (!options.any_size() && (images.size(2) != image.height || images.size(3) != image.width)) {
    throw DataError(fmt::format("a picture has {} x {} pixels, and this model reads {} x {}: resize it",
                                images.size(3), images.size(2), image.width, image.height));
  }
  auto x = projection(patch_vectors(images));  // (B, patches, D)
  if (const auto grid = patch_positions(n_rows, n_columns, x.device()); grid.defined())
    x = x + grid.to(x.scalar_type());
  if (class_token.defined()) {
    const int64_t n_before = options.n_before();
    auto before =
        distillation_token.defined() ? torch::cat({class_token, distillation_token}, 0) : class_token;
    if (positions.defined()) before = before + positions.narrow(0, 0, n_before);
    x = torch::cat({before.to(x.scalar_type()).expand({x.size(0), n_before, x.size(2)}), x}, 1);
  }
  if (norm) x = norm(x);
  return {.vectors = dropout(x, is_training() ? options.dropout() : 0.0)};
}

void PatchEmbedderImpl::visit_weights(const WeightVisitor& visit) const {
  for (const auto& table : {class_token, distillation_token, positions})
    if (table.defined()) visit({table, 0, table.size(0), WeightUse::table});
}

void PatchEmbedderImpl::pretty_print(std::ostream& stream) const {
  stream << Description("PatchEmbedder")
                .add("d_model", options.d_model())
                .add("patch_size", options.patch_size())
                .add("stem", options.stem())
                .add("stem_blocks", options.stem_blocks())
                .add("stem_norm", options.stem_norm())
                .add("position", options.position())
                .add("dropout", options.dropout());
}

void count_patch_embedder(CostAccount& account, const std::string& name, const PatchEmbedderOptions& options,
                          int64_t batch_size, int64_t n_patches) {
  if (has_stem(options))
    count_convolutional_stem(account, account.path(name, "stem"), stem_options(options), batch_size,
                             n_patches);
  count_linear(account, account.path(name, "projection"), "linear", projection_options(options),
               static_cast<double>(batch_size * n_patches));
  if (options.class_token()) count_table(account, account.path(name, "class_token"), 1, options.d_model());
  if (options.distillation_token())
    count_table(account, account.path(name, "distillation_token"), 1, options.d_model());
  if (options.position() == Position::learned)
    count_table(account, account.path(name, "positions"), options.length(), options.d_model());
  if (const auto& norm = options.norm())
    count_norms(account, account.path(name, "norm"), *norm, 1,
                static_cast<double>(batch_size * (n_patches + options.n_before())));
}

}  // namespace zoo
