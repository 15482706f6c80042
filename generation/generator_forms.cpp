// Which forms the outputs of a Generator have.

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/constraints/json_schema.h"
#include "generation/constraints/regular_expression.h"
#include "generation/generator.h"

namespace zoo {

/// The tokens that no text of a constraint has.
TokenIds Generator::unused(const GenerationConfig& options) const {
  auto result = tokenizer_.never_generated();
  for (const int64_t id : options.suppress_tokens) {
    if (id >= 0 && id < tokenizer_.vocab_size()) result.push_back(id);
  }
  for (int64_t id = model_.n_outputs(); id < tokenizer_.vocab_size(); ++id) result.push_back(id);
  return result;
}

/// Null if outputs may have any form.
std::shared_ptr<RequestConstraint> Generator::constraint(const GenerationConfig& options) const {
  const bool is_schema = !options.json_schema.empty();
  if (!is_schema && options.regex.empty()) return nullptr;
  const ConstraintKey key{
      .form = is_schema ? ConstraintKey::Form::json_schema : ConstraintKey::Form::regular_expression,
      .text = is_schema ? options.json_schema : options.regex,
      .unused = unused(options)};
  try {
    auto made = constraints_->get(key, [&] {
      return std::make_shared<TextConstraint>(
          is_schema ? parse_json_schema(key.text) : parse_regular_expression(key.text), tokenizer_,
          key.unused);
    });
    return std::make_shared<RequestConstraint>(std::move(made), output_text());
  } catch (const DataError& error) {
    throw UsageError(fmt::format("{}: {}", is_schema ? "json_schema" : "regex", error.what()));
  }
}

/// Null if they stay free.
std::shared_ptr<TokenConstraint> Generator::part_constraint(const GenerationConfig& options,
                                                            const FormedParts& parts) const {
  if (!parts.form) return nullptr;
  TORCH_CHECK(options.regex.empty() && options.json_schema.empty(), "an output has one form");
  const ConstraintKey key{
      .form = ConstraintKey::Form::parts, .text = parts.form->name, .unused = unused(options)};
  try {
    auto made = constraints_->get(key, [&] {
      return std::make_shared<TextConstraint>(parts.form->texts(), tokenizer_, key.unused, parts.shown);
    });
    return std::make_shared<RequestParts>(
        std::make_shared<const PartConstraint>(std::move(made), *parts.form), output_text());
  } catch (const DataError& error) {
    if (parts.form->mark.empty()) throw UsageError(fmt::format("the form of the output: {}", error.what()));
    return nullptr;
  }
}

}  // namespace zoo
