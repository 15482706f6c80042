#include "optimizers/optimizer_config.h"

#include <fmt/format.h>

#include "optimizers/optimizer_types.h"

namespace zoo {

void describe(ConfigVisitor& v, AdafactorConfig& c) {
  v.field("beta2_decay", c.beta2_decay,
          "In each step the means of squared gradients keep the fraction 1 - step^beta2_decay.",
          {.min = -10, .max = 0});
  v.field("clip_threshold", c.clip_threshold,
          "Largest root mean square of a step, before the learning rate; larger steps are scaled down.",
          Limits::at_least(1));
  v.field("min_rms", c.min_rms,
          "Steps are relative to the root mean square of the parameter, or to this value if it is larger.",
          Limits::at_least(0));
}

void describe(ConfigVisitor& v, MuonConfig& c) {
  v.field("momentum", c.momentum, "Fraction of the mean of gradients that is kept from step to step.",
          {.min = 0, .max = 0.9999});
  v.field("nesterov", c.nesterov, "Nesterov momentum: mix the mean with the gradient once more.");
  v.field(
      "lr_scale", c.lr_scale,
      "Factor on lr for a matrix with A rows and B columns. original: the square root of max(1, A/B); "
      "match_rms_adamw: 0.2 times the square root of max(A, B), which suits AdamW's lr and weight_decay.");
  v.field("newton_schulz_steps", c.newton_schulz_steps, "Iterations that make a step orthogonal.",
          Limits::between(1, 99));
  v.field("precision", c.precision,
          "Number format of these iterations; use fp32 where 16-bit products are slow.");
  v.field("adamw_lr", c.adamw_lr,
          "Peak learning rate of the parameters that AdamW trains: all except the matrices of hidden layers "
          "(embeddings, output projection, norms, biases); default lr.",
          Limits::positive());
}

void describe(ConfigVisitor& v, OptimizerConfig& c) {
  v.selection("type", c.type, optimizer_types(), "How a gradient becomes a step.");
  v.field("lr", c.lr, "Peak learning rate; with the noam schedule a factor in its formula.",
          Limits::positive());
  v.field("betas", c.betas,
          "adamw, adam, and AdamW within muon: decay rates of the means of gradients and of their squares; "
          "lion: of the momentum within a step and from step to step (the paper has [0.9, 0.99]).");
  v.field("eps", c.eps, "adamw, adam, and AdamW within muon: added to the root of the mean square.",
          Limits::positive());
  v.field("weight_decay", c.weight_decay, "How strongly weights are pulled towards zero.",
          Limits::at_least(0));
  v.field(
      "decayed", c.decayed,
      "Which parameters decay. matrices: all tensors with two or more dimensions; "
      "matrices_without_embeddings: these except embedding tables, also tied ones; all: norms and biases, "
      "too.");
  v.field("momentum", c.momentum, "sgd: fraction of the last step that is repeated.",
          {.min = 0, .max = 0.9999});
  v.field("adafactor", c.adafactor, "Keys for adafactor only.");
  v.field("muon", c.muon, "Keys for muon only.");
}

void describe(ConfigVisitor& v, ParameterGroupConfig& c) {
  v.field("pattern", c.pattern, "Names of parameters, in which * stands for any characters, also for dots.");
  v.field("lr_factor", c.lr_factor, "Factor on the scheduled learning rate.",
          {.min = 0, .max = 1e6, .min_excluded = true});
  v.field(
      "weight_decay", c.weight_decay,
      "Weight decay of all these parameters; default: as optimizer.weight_decay and optimizer.decayed say.",
      Limits::at_least(0));
}

void validate(const OptimizerConfig& c, const Complain& complain) {
  if (c.betas.size() != 2) complain("betas", fmt::format("must be two numbers, not {}", c.betas.size()));
  for (const double beta : c.betas) {
    if (!(beta >= 0 && beta < 1)) complain("betas", fmt::format("must be >= 0 and < 1, not {}", beta));
  }
  const auto& type = c.type;
  if (!type.kind()) return;  // an added rule uses the keys that it needs
  if (c.momentum > 0 && type != OptimizerKind::sgd) {
    const std::string_view instead = type == OptimizerKind::muon        ? "muon.momentum"
                                     : type == OptimizerKind::adafactor ? "no momentum"
                                                                        : "betas";
    complain("momentum", fmt::format("is for sgd; {} has {}", type.type, instead));
  }
  if (type != OptimizerKind::adafactor && c.adafactor != AdafactorConfig())
    complain("adafactor", fmt::format("has no meaning for {}", type.type));
  if (type != OptimizerKind::muon && c.muon != MuonConfig())
    complain("muon", fmt::format("has no meaning for {}", type.type));
}

}  // namespace zoo
