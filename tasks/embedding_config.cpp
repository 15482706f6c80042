#include "tasks/embedding_config.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

std::vector<EmbeddingPooling> poolings_of(const std::vector<std::string>& names) {
  std::vector<EmbeddingPooling> poolings;
  for (const auto& name : names) {
    const auto pooling = enumerator_named<EmbeddingPooling>(name);
    if (!pooling) {
      throw ConfigError(fmt::format("embedding.pooling: '{}' is not known; known are {}", excerpt(name),
                                    fmt::join(config_names(EmbeddingPooling{}), ", ")));
    }
    poolings.push_back(*pooling);
  }
  return poolings;
}

}  // namespace

void describe(ConfigVisitor& v, DenseConfig& c) {
  constexpr double widest = 1 << 20;
  v.field("in_features", c.in_features, "Width before the map.", Limits::between(1, widest));
  v.field("out_features", c.out_features, "Width after it.", Limits::between(1, widest));
  v.field("bias", c.bias, "Whether it has a bias.");
  v.field("activation", c.activation, "What follows it.");
}

void describe(ConfigVisitor& v, PromptConfig& c) {
  v.field("name", c.name, "Its name.");
  v.field("text", c.text, "What stands before a text.");
}

void describe(ConfigVisitor& v, EmbeddingConfig& c) {
  std::vector<std::string> names;
  for (const auto pooling : c.pooling) names.emplace_back(name_of(pooling));
  v.field("pooling", names,
          "Which hidden states make the vector, of mean, cls, last, max, weighted_mean, mean_sqrt_len and "
          "pooler; several are put one after the other. Default: [last] for a decoder, otherwise [mean].");
  c.pooling = poolings_of(names);
  v.field("include_prompt", c.include_prompt, "Whether the tokens of a prompt are pooled, too.");
  v.field("dense", c.dense,
          "Dense maps after pooling, whose weights are in dense.safetensors; default: none.");
  v.field("normalize", c.normalize, "Scale each vector to a Euclidean norm of 1.");
  v.field("lower_case", c.lower_case, "Read texts in lower case.");
  v.field("prompts", c.prompts, "Texts that stand before others, by name; default: none.");
  v.field("default_prompt", c.default_prompt, "Name of the prompt of every text; default: none.");
}

const PromptConfig* EmbeddingConfig::find_prompt(std::string_view name) const {
  const auto found = std::ranges::find(prompts, name, &PromptConfig::name);
  return found == prompts.end() ? nullptr : &*found;
}

std::string to_text(const EmbeddingConfig& c) {
  std::vector<std::string_view> names;
  for (const auto pooling : c.pooling) names.push_back(name_of(pooling));
  std::vector<std::string> parts;
  if (!names.empty()) parts.push_back(fmt::format("{}", fmt::join(names, " and ")));
  for (const auto& dense : c.dense) {
    parts.push_back(
        fmt::format("dense {} to {} ({})", dense.in_features, dense.out_features, name_of(dense.activation)));
  }
  if (c.normalize) parts.emplace_back("norm 1");
  if (c.lower_case) parts.emplace_back("of texts in lower case");
  if (c.default_prompt) {
    parts.push_back(fmt::format("behind the prompt {}{}", excerpt(*c.default_prompt),
                                c.include_prompt ? "" : ", which is not pooled"));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void validate(const EmbeddingConfig& c, const Complain& complain) {
  for (size_t i = 0; i < c.dense.size(); ++i) {
    if (i > 0 && c.dense[i].in_features != c.dense[i - 1].out_features)
      complain("dense", fmt::format("map {} reads {} numbers, and the one before it gives {}", i + 1,
                                    c.dense[i].in_features, c.dense[i - 1].out_features));
  }
  if (c.default_prompt && !c.find_prompt(*c.default_prompt))
    complain("default_prompt",
             fmt::format("'{}' is not a name of embedding.prompts", excerpt(*c.default_prompt)));
}

}  // namespace zoo
