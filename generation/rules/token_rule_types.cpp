#include "generation/rules/token_rule_types.h"

#include "generation/rules/timestamps.h"

namespace zoo {

Registry<TokenRuleType>& token_rule_types() {
  static Registry<TokenRuleType> types("rule of tokens", {timestamp_rule()});
  return types;
}

}  // namespace zoo
