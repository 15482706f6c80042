#include "templates/text_template.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "templates/interpreter.h"
#include "templates/parser.h"

namespace zoo {

struct TextTemplate::Parsed {
  TemplateLimits limits;
  templates::Syntax syntax;
};

TextTemplate::TextTemplate(std::string_view source, const TemplateLimits& limits)
    : parsed_(std::make_unique<const Parsed>(Parsed{limits, templates::parse(source, limits)})) {}
TextTemplate::~TextTemplate() = default;
TextTemplate::TextTemplate(TextTemplate&&) noexcept = default;
TextTemplate& TextTemplate::operator=(TextTemplate&&) noexcept = default;

RenderedText TextTemplate::render(const nlohmann::ordered_json& variables, const std::tm& now) const {
  return templates::Interpreter(parsed_->syntax, parsed_->limits, now).render(variables);
}

bool TextTemplate::marks_generated_text() const {
  return std::ranges::any_of(parsed_->syntax.statements, [](const auto& statement) {
    return std::holds_alternative<templates::Generation>(statement.form);
  });
}

}  // namespace zoo
