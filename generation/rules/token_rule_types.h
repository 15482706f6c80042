#pragma once
// Rules of tokens that programs add: the types of `generation.rules`. The library's own rules are keys of
// `generation`, as in transformers.

#include <functional>
#include <memory>
#include <string_view>

#include <c10/core/Device.h>

#include "generation/rules/logits_processors.h"
#include "io/config/registry.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// What a rule may look at.
struct TokenRuleContext {
  const Tokenizer& tokenizer;
  std::vector<int64_t> ends;  // ids that end an output
  c10::Device device;         // of the logits
};

/// A rule. Programs add theirs with token_rule_types().add(); a rule is applied after those of the library
/// and before a regular expression, a schema and sampling.
struct TokenRuleType : TypeInfo {
  std::function<std::unique_ptr<const LogitsProcessor>(const Selection& selection,
                                                       const TokenRuleContext& context)>
      make;
};

inline std::string_view what_lacks(const TokenRuleType& type) {
  return type.make ? std::string_view() : "make, which builds the rule";
}

Registry<TokenRuleType>& token_rule_types();

}  // namespace zoo
