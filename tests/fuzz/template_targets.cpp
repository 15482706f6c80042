// Chat templates: sources of strangers, rendered with a small conversation.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "templates/text_template.h"
#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

const nlohmann::ordered_json& conversation() {
  static const auto variables = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "Be brief."},
      {"role": "user", "content": "Grüße, \"you\"\n"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",
        "function": {"name": "f", "arguments": {"x": 1.5, "y": [true, null]}}}]},
      {"role": "tool", "tool_call_id": "call00001", "content": "<think>日本</think>"}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "return": {"type": "string"},
      "parameters": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}],
    "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  return variables;
}

/// What costs much, or is nested deeply.
Seeds hostile_templates() {
  return {"{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
          "{% set ns = namespace(x='ab', y=[1]) %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% set "
          "ns.y = "
          "[ns.y, ns.y] %}{% endfor %}{{ ns.x }}{{ ns.y | tojson }}",
          "{% macro m(x, y=x) %}{{ m(x + 1) }}{{ caller(y) }}{% endmacro %}{% call(z) m(1) %}{{ z }}{% "
          "endcall %}",
          "{{ 'x' * 10 ** 9 }}{{ '%900000d' % 1 }}{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
          "{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns }}{% for i in range(100000) %}{% set ns.a = "
          "[ns.a] "
          "%}{% endfor %}",
          "{{ " + std::string(90, '(') + "1" + std::string(90, ')') + " }}" + std::string(200, '{'),
          "{% for i in range(100000) %}{% macro m() %}{{ i }}{% endmacro %}{% set x = range(100000) | "
          "map('string') | "
          "list | sort(reverse=true) | unique | join(',') %}{% endfor %}"};
}

}  // namespace

std::vector<Target> template_targets() {
  return {{"template", "chat templates, rendered", mutate_text,
           [](const std::string& input) { TextTemplate(input).render(conversation()); },
           hostile_templates()}};
}

}  // namespace zoo::fuzz
