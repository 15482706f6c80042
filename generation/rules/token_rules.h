#pragma once

#include <memory>

#include "generation/rules/logits_processors.h"
#include "generation/rules/sampler.h"

namespace zoo {

/// How tokens are chosen. Requests may share it.
struct TokenRules {
  LogitsProcessors processors;
  std::unique_ptr<const Sampler> sampler;
};

}  // namespace zoo
