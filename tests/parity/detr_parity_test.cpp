// A whole small DETR against transformers: logits, boxes, the loss and its parts, the gradient of every
// parameter.

#include "models/families/detr.h"
#include "models/families/families.h"
#include "tasks/images/set_criterion.h"
#include "tests/parity/reference.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

/// The shape of reference_detr.py.
ModelConfig small_detr(Position position) {
  ModelConfig config;
  config.architecture = Selection("detr", DetrConfig{.n_queries = 5,
                                                     .backbone = {.depth = ResnetDepth::layers_18,
                                                                  .width = 8,
                                                                  .norm = ChannelNormKind::frozen_batch}});
  config.d_model = 24;
  config.n_layers = 2;
  config.n_decoder_layers = 3;
  config.n_heads = 4;
  config.d_ff = 40;
  config.activation = Activation::relu;
  config.norm_placement = NormPlacement::post;
  config.position = position;
  config.dropout = 0;
  return config;
}

class DetrParity : public ReferenceTest {
 protected:
  DetrParity() : ReferenceTest("reference_detr.py") {}
  void expect_parity(Position position, const std::string& name);
};

void DetrParity::expect_parity(Position position, const std::string& name) {
  const ModelPurpose purpose{
      .head = HeadKind::detection, .n_classes = 3, .image = {.channels = 3, .height = 70, .width = 101}};
  const auto model = initialized_model(small_detr(position), purpose);
  model->train();  // every dropout is 0, and the statistics are frozen: this must change nothing
  ReferenceCase reference(file(name));
  reference.load(*model);
  for (auto& item : model->named_buffers()) {
    const torch::NoGradGuard no_grad;
    item.value().copy_(reference.input("buffers/" + item.key()));
  }
  Batch batch;
  for (const std::string field : {"images", "image_sizes", "boxes", "box_classes", "batch_counts"})
    batch.fields[field] = reference.input(field);

  const auto found = model->detecting()->detect(batch);
  reference.expect_output("logits", found.logits);
  reference.expect_output("boxes", found.boxes);
  reference.expect_output("logits_of_features", model->logits(model->features(batch)));

  const SetCriterionConfig config;
  const auto parts = set_losses(found.logits[-1], found.boxes[-1], batch, config);
  reference.expect_output("loss_ce", parts.classes);
  reference.expect_output("loss_bbox", parts.boxes);
  reference.expect_output("loss_giou", parts.overlap);

  // Also as threads share the rows: the objects of the whole batch count in every part.
  for (const int64_t n_parts : {1, 3}) {
    model->zero_grad();
    GradientAccumulator gradients(model, std::make_shared<SetCriterion>(config), {.n_parts = n_parts});
    reference.expect_output("loss", gradients.differentiate({batch}).sum());
  }
  reference.expect_gradients(model.get());
}

TEST_F(DetrParity, PaddedPicturesOfThreeSizes) { expect_parity(Position::sinusoidal, "detr"); }
TEST_F(DetrParity, LearnedPositions) { expect_parity(Position::learned, "detr_learned"); }

}  // namespace
}  // namespace zoo::testing
