// Small residual networks against transformers: maps of features, loss, logits, the gradient of every
// parameter, running means and FLOPs; and the bytes that they keep for the backward pass.

#include <fmt/format.h>

#include "base/tensor_memory.h"
#include "models/embedders/resnet.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr double kTolerance = 1e-6, kFloatTolerance = 2e-4;

/// The cases of reference_resnet.py.
struct Case {
  std::string name;
  ResnetConfig config;
};

constexpr int64_t kWidth = 6;

std::vector<Case> cases() {
  using enum ResnetDepth;
  using enum ChannelNormKind;
  const auto of = [](ResnetDepth depth, StemStride stem_stride, ChannelNormKind norm, bool dilation = false) {
    return Case{
        fmt::format("{}_{}_{}{}", name_of(depth), name_of(stem_stride), name_of(norm),
                    dilation ? "_dilated" : ""),
        {.depth = depth, .width = kWidth, .stem_stride = stem_stride, .norm = norm, .dilation = dilation}};
  };
  return {of(layers_18, StemStride::four, batch),        of(layers_34, StemStride::two, batch),
          of(layers_50, StemStride::four, batch),        of(layers_50, StemStride::one, batch),
          of(layers_18, StemStride::one, frozen_batch),  of(layers_50, StemStride::four, frozen_batch),
          of(layers_18, StemStride::four, group),        of(layers_50, StemStride::two, group),
          of(layers_34, StemStride::one, batch, true),   of(layers_50, StemStride::four, frozen_batch, true),
          of(layers_101, StemStride::four, frozen_batch)};
}

class ResnetParity : public ReferenceTest {
 protected:
  ResnetParity() : ReferenceTest("reference_resnet.py") {}
};

// In float64: gradients of float32 differ where rounding switches a ReLU.
TEST_F(ResnetParity, LossesGradientsAndRunningMeans) {
  for (const auto& [name, resnet] : cases()) {
    SCOPED_TRACE(name);
    ModelConfig config;
    config.architecture = Selection("resnet", resnet);
    config.dropout = 0;
    const ModelPurpose purpose{.head = HeadKind::classification,
                               .n_classes = 5,
                               .image = {.channels = 3, .height = 40, .width = 72}};
    const auto model = initialized_model(config, purpose);
    model->to(torch::kFloat64);
    const ReferenceCase reference(file(name));
    reference.load(*model);
    auto buffers = model->named_buffers();
    EXPECT_EQ(reference.names("input/buffers/").size(), buffers.size());
    for (auto& item : buffers) item.value().copy_(reference.get("input/buffers/" + item.key()));

    model->train();
    const auto images = reference.get("input/images"), targets = reference.get("input/targets");
    Batch batch{.targets = targets, .fields = {{"images", images}}};
    const auto logits = model->logits(model->features(batch));
    const auto loss = torch::nll_loss(logits.log_softmax(1), targets);
    loss.backward();
    reference.expect_output("logits", logits, kTolerance);
    reference.expect_output("loss", loss, kTolerance);
    reference.expect_gradients(model.get());
    for (const auto& item : buffers)
      reference.expect_output("buffers/" + item.key(), item.value(), kTolerance);
    EXPECT_DOUBLE_EQ(forward_flops(config, purpose, pass_shape(batch)),
                     reference.output("flops").item<double>());

    model->eval();
    const torch::NoGradGuard no_grad;
    const ReferenceCase evaluated(file(name + "_evaluated"));
    if (evaluated.names("output/").empty()) continue;  // the reference reads images by its own stem only
    evaluated.expect_output("evaluated", model->logits(model->features(batch)), kTolerance);
  }
}

// In float32, as models are trained.
TEST_F(ResnetParity, MapOfFeatures) {
  for (const auto& [name, resnet] : cases()) {
    SCOPED_TRACE(name);
    const ReferenceCase reference(file(name));
    Resnet network(ResnetOptions(3, resnet));
    const torch::NoGradGuard no_grad;
    for (auto& item : network->named_parameters())
      item.value().copy_(reference.get("param/network." + item.key()));
    for (auto& item : network->named_buffers())
      item.value().copy_(reference.get("input/buffers/network." + item.key()));
    network->train();
    reference.expect_output("features", network(reference.get("input/images").to(torch::kFloat)),
                            kFloatTolerance);
  }
}

// The trainer's and inspect's figure is what LibTorch really keeps.
TEST(ResnetMemory, ActivationBytesAreThoseThatAreKept) {
  for (const auto& [name, resnet] : cases()) {
    SCOPED_TRACE(name);
    const ResnetOptions options(3, resnet);
    Resnet network(options);
    const auto images = torch::randn({2, 3, 40, 56}).contiguous(at::MemoryFormat::ChannelsLast);
    CostAccount account(CostAccount::Detail::layers);
    count_resnet(account, "network", options, 2, 40, 56);
    double counted = 0;
    for (const auto& entry : account.entries()) counted += entry.activation_bytes;
    const TensorMemory memory(c10::kCPU);
    const auto output = network(images);
    EXPECT_EQ(static_cast<double>(memory.current()), counted);
  }
}

}  // namespace
}  // namespace zoo::testing
