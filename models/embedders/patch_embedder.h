#pragma once
// Turns images into the vectors of their patches, as in ViT (Dosovitskiy et al. 2021, section 3.1).

#include <optional>

#include <torch/types.h>

#include "data/batch.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"
#include "models/config/model_config.h"
#include "models/embedder.h"
#include "models/embedders/convolutional_stem.h"

namespace zoo {

/// How pixels become vectors: a linear map of the numbers of each patch, or convolutions that also see the
/// pixels around it, and a linear map of what they find.
enum class VitStem { patches, convolutions };
constexpr auto config_names(VitStem) { return std::to_array<std::string_view>({"patches", "convolutions"}); }

struct PatchEmbedderOptions {
  PatchEmbedderOptions(int64_t d_model, ImageShape image, int64_t patch_size)
      : d_model_(d_model), image_(image), patch_size_(patch_size) {}
  /// Patches of an image of the given size.
  int64_t n_patches(int64_t height, int64_t width) const {
    return (height / patch_size_) * (width / patch_size_);
  }
  /// T for an image of the shape `image`, with the vectors before the patches.
  int64_t length() const { return n_patches(image_.height, image_.width) + n_before(); }
  /// The learned vectors before the patches.
  int64_t n_before() const { return (class_token_ ? 1 : 0) + (distillation_token_ ? 1 : 0); }
  /// The numbers of a patch: channels · P².
  int64_t patch_width() const { return image_.channels * patch_size_ * patch_size_; }

  TORCH_ARG(int64_t, d_model);
  /// The table of positions has a row for each patch of such an image. Images of other sizes get positions
  /// between those of the table.
  TORCH_ARG(ImageShape, image);
  /// P: patches are squares of P × P pixels. Pixels at the right and the bottom that fill no patch are not
  /// read.
  TORCH_ARG(int64_t, patch_size);
  /// learned: a table; sinusoidal: those of a grid (grid_positions()); none.
  TORCH_ARG(Position, position) = Position::learned;
  TORCH_ARG(VitStem, stem) = VitStem::patches;
  /// Residual blocks and norms of VitStem::convolutions, see ConvolutionalStemOptions.
  TORCH_ARG(int64_t, stem_blocks) = 0;
  TORCH_ARG(ChannelNormKind, stem_norm) = ChannelNormKind::group;
  /// Whether a learned vector stands before the patches.
  TORCH_ARG(bool, class_token) = true;
  /// Whether a second one follows it (DeiT: Touvron et al. 2021, section 4). Needs the first.
  TORCH_ARG(bool, distillation_token) = false;
  /// Whether the projection has a bias (CLIP, Radford et al. 2021: it has none).
  TORCH_ARG(bool, bias) = true;
  /// A norm of the vectors with their positions (CLIP); default: they stay.
  TORCH_ARG(std::optional<NormOptions>, norm) = std::nullopt;
  /// Whether images of other sizes are read.
  TORCH_ARG(bool, any_size) = true;
  /// Probability of dropping an element of the vectors.
  TORCH_ARG(double, dropout) = 0.0;
};

class PatchEmbedderImpl : public Cloneable<PatchEmbedderImpl, EmbedderImpl>, public WeightOwner {
 public:
  explicit PatchEmbedderImpl(const PatchEmbedderOptions& options);
  /// Embeds the field "images" (B, C, H, W) of the batch: (B, T, D) with T = patches, row by row, after the
  /// class token and the distillation token if there are any. Throws c10::Error for another number of
  /// channels, and for images that are smaller than a patch; DataError for images of another size, unless
  /// options.any_size() is set.
  Embedded forward(const Batch& batch) override;
  void visit_weights(const WeightVisitor& visit) const override;
  bool mixes_rows() const override { return stem && stem->mixes_rows(); }
  void pretty_print(std::ostream& stream) const override;

  PatchEmbedderOptions options;
  ConvolutionalStem stem{nullptr};
  /// C·P² → D: a patch is read channel by channel, and each channel row by row. After a stem: D → D.
  Linear projection{nullptr};
  torch::Tensor class_token;         // (1, D)
  torch::Tensor distillation_token;  // (1, D)
  torch::Tensor positions;           // (T, D); learned only
  Norm norm{nullptr};                // if the options have one

 private:
  torch::Tensor patch_vectors(const torch::Tensor& images);
  /// (n_rows · n_columns, D), or undefined: the positions of a grid of patches.
  torch::Tensor patch_positions(int64_t n_rows, int64_t n_columns, torch::Device device) const;
};
TORCH_MODULE(PatchEmbedder);

/// (B, C, H, W) → (B, patches, C·P²)
torch::Tensor patches_of(const torch::Tensor& images, int64_t patch_size);

/// Adds the cost of a PatchEmbedder with path `name` for `batch_size` images that give `n_patches` each.
void count_patch_embedder(CostAccount& account, const std::string& name, const PatchEmbedderOptions& options,
                          int64_t batch_size, int64_t n_patches);

}  // namespace zoo
