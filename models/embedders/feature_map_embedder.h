#pragma once
// Turns pictures into the vectors of the places of a feature map, as in DETR (Carion et al. 2020, section
// 3.2): a convolutional network, a linear map to D, and positions that every layer adds.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/linear.h"
#include "models/embedder.h"
#include "models/embedders/resnet.h"

namespace zoo {

struct FeatureMapEmbedderOptions {
  FeatureMapEmbedderOptions(int64_t d_model, const ResnetOptions& backbone)
      : d_model_(d_model), backbone_(backbone) {}
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(ResnetOptions, backbone);
  /// sinusoidal: those of a grid, scaled to the part of a picture that is no padding (grid_positions());
  /// learned: one table for rows and one for columns, as transformers' DetrLearnedPositionEmbedding.
  TORCH_ARG(Position, position) = Position::sinusoidal;
  /// learned: rows, and columns, of the largest feature map.
  TORCH_ARG(int64_t, max_places) = 50;
};

class FeatureMapEmbedderImpl : public Cloneable<FeatureMapEmbedderImpl, EmbedderImpl>, public WeightOwner {
 public:
  explicit FeatureMapEmbedderImpl(const FeatureMapEmbedderOptions& options);
  /// Embeds the field "images" (B, C, H, W) of the batch: (B, T, D) with T = places of the feature map, row
  /// by row. The field "image_sizes" (B, 2), if there is one, says which part of each image is no padding. A
  /// place is visible if its upper left pixel is, as in transformers' DETR. Throws DataError if the feature
  /// map has more rows or columns than the learned tables.
  Embedded forward(const Batch& batch) override;
  bool mixes_rows() const override { return backbone->mixes_rows(); }
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  FeatureMapEmbedderOptions options;
  Resnet backbone{nullptr};
  Linear projection{nullptr};             // channels of the feature map → D
  torch::Tensor row_table, column_table;  // (max_places, D/2); learned only

 private:
  /// (1, T, D): the columns' half comes first.
  torch::Tensor learned_positions(int64_t n_rows, int64_t n_columns) const;
};
TORCH_MODULE(FeatureMapEmbedder);

/// Adds the cost of a FeatureMapEmbedder with path `name` for images of height × width.
void count_feature_map_embedder(CostAccount& account, const std::string& name,
                                const FeatureMapEmbedderOptions& options, int64_t batch_size, int64_t height,
                                int64_t width);

}  // namespace zoo
