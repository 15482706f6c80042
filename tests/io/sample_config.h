#pragma once
// A configuration with every kind of key, for the tests of reading and writing.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"

namespace zoo::testing {

enum class Norm { kLayerNorm, kRmsNorm, kNone };
constexpr std::array<std::string_view, 3> config_names(Norm) { return {"layer_norm", "rms_norm", "none"}; }

enum class Precision { kAuto, kFp32 };
constexpr std::array<std::string_view, 2> config_names(Precision) { return {"auto", "fp32"}; }

struct ScalingConfig {
  double factor = 8;
  std::optional<int64_t> original;
  bool operator==(const ScalingConfig&) const = default;
};

struct ModelConfig {
  int64_t d_model = 512;
  int64_t n_layers = 6;
  std::optional<int64_t> d_ff;
  Norm norm = Norm::kLayerNorm;
  std::optional<Precision> precision;
  bool bias = true;
  double dropout = 0.1;
  std::optional<ScalingConfig> scaling;
  bool operator==(const ModelConfig&) const = default;
};

struct EmptyConfig {
  bool operator==(const EmptyConfig&) const = default;
};

struct TrainingConfig {
  int64_t seed = 0;
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  std::vector<int64_t> milestones;
  AutoOr<int64_t> batch_size = 32;
  EmptyConfig nothing;
  bool operator==(const TrainingConfig&) const = default;
};

struct SampleConfig {
  std::string name = "run";
  std::vector<std::string> files;
  ModelConfig model;
  TrainingConfig training;
  bool operator==(const SampleConfig&) const = default;
};

inline void describe(ConfigVisitor& v, ScalingConfig& c) {
  v.field("factor", c.factor, "How much longer.", Limits{.min = 1, .max = 64, .min_excluded = true});
  v.field("original", c.original, "Length before.");
}
inline void describe(ConfigVisitor& v, ModelConfig& c) {
  v.field("d_model", c.d_model, "Width of the residual stream.", Limits::at_least(1));
  v.field("n_layers", c.n_layers, "Number of layers.", Limits::between(1, 1000));
  v.field("d_ff", c.d_ff,
          "Width of the feed-forward layer; if absent, four times d_model.  Größe:", Limits::at_least(1));
  v.field("norm", c.norm, "Normalisation.");
  v.field("precision", c.precision, "Number format.");
  v.field("bias", c.bias, "Whether linear layers have a bias.");
  v.field("dropout", c.dropout, "Probability of dropping.", Limits::between(0, 1));
  v.field("scaling", c.scaling, "Stretching of the positions.");
}
inline void describe(ConfigVisitor&, EmptyConfig&) {}
inline void describe(ConfigVisitor& v, TrainingConfig& c) {
  v.field("seed", c.seed, "Seed of everything.");
  v.field("lr", c.lr, "Peak learning rate.", Limits::positive());
  v.field("betas", c.betas, "Decay rates.", Limits::between(0, 1));
  v.field("milestones", c.milestones, "Steps at which something happens.");
  v.field("batch_size", c.batch_size, "Sequences.", Limits::at_least(1));
  v.field("nothing", c.nothing, "A group without keys.");
}
inline void describe(ConfigVisitor& v, SampleConfig& c) {
  v.field("name", c.name, "Name of the run.");
  v.field("files", c.files, "Corpora.");
  v.field("model", c.model, "What is trained.");
  v.field("training", c.training, "How it is trained.");
}

inline SampleConfig read_sample(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  SampleConfig config;
  ConfigFile::parse(yaml, "a.yaml", overrides).read(config);
  return config;
}

}  // namespace zoo::testing
