#include <torch/types.h>

#include "types.h"

namespace {

struct FocalLossOptions {
  double gamma = 2.0;
};
void describe(zoo::ConfigVisitor& v, FocalLossOptions& options) {
  v.field("gamma", options.gamma, "0 is the cross-entropy; more looks away from what is easy.",
          zoo::Limits::at_least(0));
}

class FocalLoss final : public zoo::Objective {
 public:
  explicit FocalLoss(double gamma) : gamma_(gamma) {}
  int64_t n_targets(const zoo::Batch& batch) const override { return batch.n_targets(); }
  torch::Tensor loss(zoo::Model& model, const zoo::Batch& part) const override {
    const auto logits = model.logits(model.features(part)).to(torch::kFloat);
    const auto logprobs = logits.log_softmax(-1).gather(1, part.targets.unsqueeze(1)).squeeze(1);
    return (-torch::pow(1 - logprobs.exp(), gamma_) * logprobs).sum();
  }

 private:
  double gamma_;
};

}  // namespace

zoo::ObjectiveType focal_loss() {
  zoo::ObjectiveType type;
  type.name = "focal";
  type.doc = "Cross-entropy that looks away from what is easy.";
  type.make_options = zoo::options_of<FocalLossOptions>();
  type.make = [](const zoo::Selection& selection,
                 const zoo::ObjectiveContext&) -> std::shared_ptr<const zoo::Objective> {
    return std::make_shared<FocalLoss>(selection.as<FocalLossOptions>().gamma);
  };
  return type;
}
