#pragma once

#include <memory>
#include <optional>

#include "generation/rules/logits_processors.h"
#include "generation/rules/sampler.h"

namespace zoo {

/// How tokens are chosen. Requests may share it.
struct TokenRules {
  LogitsProcessors processors;
  std::unique_ptr<const Sampler> sampler;

  /// The same as numbers; nothing if a rule looks at the text.
  std::optional<RowRules> of_row() const {
    RowRules rules;
    for (const auto& processor : processors) {
      if (!processor->add_to(rules)) return std::nullopt;
    }
    return sampler->add_to(rules) ? std::optional(std::move(rules)) : std::nullopt;
  }
};

}  // namespace zoo
