// Templates end with an error where they cost too much. What they write is compared with jinja2 in
// tests/parity/chat_template_test.py.

#include "templates/text_template.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;

std::string rendered(const std::string& source,
                     const nlohmann::ordered_json& variables = nlohmann::ordered_json::object()) {
  return TextTemplate(source).render(variables).text;
}

std::string error_of(const std::string& source) {
  return testing::message_of<TemplateError>([&] { rendered(source); });
}

std::string repeated(const std::string& text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

TEST(TextTemplate, WritesConversations) {
  EXPECT_EQ(rendered("{% for m in messages %}\n  <{{ m.role }}> {{ m.content | trim }}\n{% endfor %}",
                     {{"messages", {{{"role", "user"}, {"content", " Hi! "}}}}}),
            "  <user> Hi!\n");
}

TEST(TextTemplate, NotesWhatIsGenerated) {
  const auto result =
      TextTemplate("a{% generation %}é{% endgeneration %}b{% generation %}c{% endgeneration %}").render({});
  EXPECT_EQ(result.text, "aébc");
  EXPECT_EQ(result.generated, (std::vector<ByteSpan>{{1, 3}, {4, 5}}));
}

TEST(TextTemplate, SaysTheLineOfAnError) {
  EXPECT_EQ(error_of("a\nb {{ x.y }}"), "line 2: 'x' is undefined");
  EXPECT_EQ(error_of("\n\n{{ raise_exception('no\nway') }}"), "line 3: no\\nway");
  EXPECT_EQ(error_of("{% if x %}\n"), "line 1: {% endif %} is missing");
}

TEST(TextTemplate, CannotChangeWhatItIsGiven) {
  const nlohmann::ordered_json variables = {{"xs", {1, 2}}};
  EXPECT_EQ(rendered("{{ xs.append is defined }}", variables), "False");
  EXPECT_THROW(rendered("{{ xs.append(3) }}", variables), TemplateError);
}

// Each would take hours or all memory.
TEST(TextTemplate, EndsWhatCostsTooMuch) {
  const std::vector<std::string> hostile = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ range(10 ** 12) }}",
      "{{ 'x' * 10 ** 12 }}",
      "{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ "
      "ns.x }}",
      "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
      "{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{{ " + repeated("(", 50'000) + "1" + repeated(")", 50'000) + " }}",
      "{{ 1" + repeated(" + 1", 50'000) + " }}",
      "{{ x" + repeated(".y", 50'000) + " }}",
      repeated("{% if 1 %}", 20'000),
      "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
      "{% set x = 'a' * 1000000 %}{% for i in range(1000) %}{{ x.find('a' * 500000 ~ 'b') }}{% endfor %}",
      "{{ '%999999999d' % 1 }}",
      "{{ '%*d' % (-9223372036854775807 - 1, 5) }}",
      "{{ '{:>999999999}'.format(1) }}",
      "{% set x = 'a ' * 1000000 %}{% for i in range(1000) %}{% set y = x | title %}{% endfor %}",
      std::string(300'000, ' ')};
  for (const auto& source : hostile) EXPECT_NE(error_of(source), "no error") << source.substr(0, 100);
}

// Values that hold each other, or are nested by way of loops and macros, are freed without deep recursion.
TEST(TextTemplate, FreesWhatIsNested) {
  EXPECT_EQ(rendered("{% set ns = namespace(x=1) %}{% for i in range(50000) %}{% for j in [ns.x] %}"
                     "{% set ns.x = [loop] %}{% endfor %}{% endfor %}a"),
            "a");
  EXPECT_EQ(rendered("{% set ns = namespace(m=1) %}{% for i in range(50000) %}{% set old = ns.m %}"
                     "{% macro m() %}{{ old }}{% endmacro %}{% set ns.m = m %}{% endfor %}a"),
            "a");
}

TEST(TextTemplate, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of("{{ 1 | pprint }}"), HasSubstr("the filter 'pprint'"));
  EXPECT_THAT(error_of("{% include 'x' %}"), HasSubstr("the tag 'include'"));
  EXPECT_THAT(error_of("\xff"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace zoo
