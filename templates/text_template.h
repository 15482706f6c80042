#pragma once
// Text from a template: the subset of Jinja2 that chat templates use, as Hugging Face transformers renders
// it.
//
//   const TextTemplate greeting("{% for m in messages %}<{{ m.role }}> {{ m.content }}{% endfor %}");
//   const auto result = greeting.render({{"messages", {{{"role", "user"}, {"content", "Hi!"}}}}});
//   result.text;  // "<user> Hi!"
//
// The result equals that of jinja2's ImmutableSandboxedEnvironment with trim_blocks, lstrip_blocks, loop
// controls, {% generation %}, and transformers' tojson, raise_exception and strftime_now. Two things differ:
// whole numbers have 64 bits, and the parts that docs/chat.md lists as unsupported are errors.

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "templates/values/limits.h"

namespace zoo {

struct ByteSpan {
  size_t begin, end;
  bool operator==(const ByteSpan&) const = default;
};

struct RenderedText {
  std::string text;
  /// What stands in {% generation %} blocks, in order.
  std::vector<ByteSpan> generated;
};

class TextTemplate {
 public:
  /// Throws TemplateError.
  explicit TextTemplate(std::string_view source, const TemplateLimits& limits = {});
  ~TextTemplate();
  TextTemplate(TextTemplate&&) noexcept;
  TextTemplate& operator=(TextTemplate&&) noexcept;

  /// `variables`: an object. `now`: what strftime_now tells. Throws TemplateError.
  RenderedText render(const nlohmann::ordered_json& variables, const std::tm& now = {}) const;
  /// Whether it has {% generation %}.
  bool marks_generated_text() const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace zoo
