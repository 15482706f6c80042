#include "generation/rules/token_rule_types.h"

namespace zoo {

Registry<TokenRuleType>& token_rule_types() {
  static Registry<TokenRuleType> types("rule of tokens");
  return types;
}

}  // namespace zoo
