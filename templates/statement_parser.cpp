// Statements: {% … %}.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/parser.h"

namespace zoo::templates {
namespace {

using Ends = std::initializer_list<std::string_view>;

class StatementParser final : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Syntax syntax() {
    syntax_.body = statements({});
    return std::move(syntax_);
  }

 private:
  template <class Form>
  void add(Body& body, int line, Form form) {
    body.push_back(&syntax_.statements.emplace_back(Statement{line, std::move(form)}));
  }

  void end_block() {
    if (current().kind != TokenKind::block_end) fail_unexpected("'%}'");
    take();
  }

  /// The statements up to one of the tags in `ends`, whose name is then current; without ends, all.
  Body statements(const Ends& ends) {
    const Deeper deeper(*this);
    Body body;
    for (;;) {
      const int line = current().line;
      switch (current().kind) {
        case TokenKind::end:
          if (ends.size() == 0) return body;
          fail(fmt::format("{{% {} %}} is missing", *(ends.end() - 1)));
        case TokenKind::data:
          add(body, line, Data{take().text});
          break;
        case TokenKind::variable_begin:
          take();
          add(body, line, Output{tuple()});
          if (current().kind != TokenKind::variable_end) fail_unexpected("'}}'");
          take();
          break;
        default:
          take();  // {%
          if (std::ranges::any_of(ends, [&](auto name) { return current().is_name(name); })) return body;
          statement(body);
          end_block();
      }
    }
  }

  /// The rest of a tag and the statements up to one of the tags in `ends`, which is then read up to its name.
  Body block(const Ends& ends) {
    skip(":");
    end_block();
    return statements(ends);
  }
  Body block_up_to(std::string_view end) {
    auto body = block({end});
    take();
    return body;
  }

  void statement(Body& body) {
    if (current().kind != TokenKind::name) fail_unexpected("the name of a tag");
    const int line = current().line;
    const auto tag = take().text;
    if (tag == "if") return add(body, line, if_form());
    if (tag == "for") return add(body, line, for_form());
    if (tag == "set") return set(body, line);
    if (tag == "macro") return macro(body, line);
    if (tag == "call") return call(body, line);
    if (tag == "with") return with(body, line);
    if (tag == "generation") return generation(body, line);
    if (tag == "print") return print(body, line);
    if (tag == "filter") {
      auto filter = filters(filter_after_bar(nullptr));
      return add(body, line, FilterBlock{filter, block_up_to("endfilter")});
    }
    if (tag == "break" || tag == "continue") {
      if (n_loops_ == 0) fail_at(line, fmt::format("'{}' outside of a loop", tag));
      return tag == "break" ? add(body, line, Break{}) : add(body, line, Continue{});
    }
    fail_at(line, fmt::format("the tag '{}' does not exist here or is not supported", excerpt(tag, 30)));
  }

  If if_form() {
    If result;
    for (;;) {
      auto condition = tuple(Inline::refused);
      result.branches.push_back({condition, block({"elif", "else", "endif"})});
      const auto end = take().text;
      if (end == "elif") continue;
      if (end == "else") result.branches.push_back({nullptr, block_up_to("endif")});
      return result;
    }
  }

  For for_form() {
    For result{.target = target(TargetKind::names),
               .items = nullptr,
               .condition = nullptr,
               .body = {},
               .otherwise = {}};
    if (!skip_name("in")) fail_unexpected("'in'");
    result.items = tuple(Inline::refused, "recursive");
    if (skip_name("if")) result.condition = expression();
    if (current().is_name("recursive")) fail("recursive loops are not supported");
    ++n_loops_;
    result.body = block({"else", "endfor"});
    --n_loops_;
    if (take().text == "else") result.otherwise = block_up_to("endfor");
    return result;
  }

  enum class TargetKind { names, names_and_attributes };

  Target single_target(TargetKind kind) {
    const Deeper deeper(*this);
    if (skip("(")) {
      auto result = target(kind);
      expect(")");
      return result;
    }
    const auto name = expect_name();
    for (const auto* word : {"true", "True", "false", "False", "none", "None"}) {
      if (name == word) fail(fmt::format("'{}' cannot get a value", name));
    }
    Target result{.symbol = syntax_.symbol(name), .attribute = {}, .parts = {}};
    if (kind == TargetKind::names_and_attributes && skip(".")) result.attribute = expect_name();
    return result;
  }

  Target target(TargetKind kind) {
    auto first = single_target(kind);
    if (!current().is(",")) return first;
    Target result;
    result.parts.push_back(std::move(first));
    while (skip(",")) {
      const bool ends = current().is_name("in") || current().is("=") || current().is(")") ||
                        current().kind == TokenKind::block_end;
      if (ends) break;
      result.parts.push_back(single_target(kind));
    }
    return result;
  }

  void set(Body& body, int line) {
    auto to = target(TargetKind::names_and_attributes);
    if (skip("=")) return add(body, line, Set{std::move(to), tuple()});
    const auto filter = current().is("|") ? filters(nullptr) : nullptr;
    add(body, line, SetBlock{std::move(to), filter, block_up_to("endset")});
  }

  /// The body of what is called: a loop around it is not its own.
  void read_body(MacroForm& form, std::string_view end) {
    macros_.push_back(&form);
    const int64_t n_loops = std::exchange(n_loops_, 0);
    form.body = block_up_to(end);
    n_loops_ = n_loops;
    macros_.pop_back();
  }

  void parameters(MacroForm& form) {
    expect("(");
    while (!current().is(")")) {
      if (!form.parameters.empty()) expect(",");
      Parameter parameter{.symbol = syntax_.symbol(expect_name()), .otherwise = nullptr};
      if (skip("=")) {
        macros_.push_back(&form);
        parameter.otherwise = expression();
        macros_.pop_back();
      } else if (!form.parameters.empty() && form.parameters.back().otherwise) {
        fail("a parameter without a default after one with a default");
      }
      form.parameters.push_back(parameter);
    }
    expect(")");
  }

  void macro(Body& body, int line) {
    MacroStatement statement{.symbol = nullptr, .macro = {}};
    statement.macro.name = expect_name();
    statement.symbol = syntax_.symbol(statement.macro.name);
    parameters(statement.macro);
    read_body(statement.macro, "endmacro");
    add(body, line, std::move(statement));
  }

  void call(Body& body, int line) {
    CallBlock statement{.call = nullptr, .caller = {.name = "caller", .parameters = {}, .body = {}}};
    if (current().is("(")) parameters(statement.caller);
    statement.call = expression();
    if (!std::holds_alternative<Call>(statement.call->form)) fail_at(line, "a call is expected");
    read_body(statement.caller, "endcall");
    add(body, line, std::move(statement));
  }

  void with(Body& body, int line) {
    With statement;
    while (current().kind != TokenKind::block_end) {
      if (!statement.values.empty()) expect(",");
      auto to = target(TargetKind::names);
      expect("=");
      statement.values.emplace_back(std::move(to), expression());
    }
    statement.body = block_up_to("endwith");
    add(body, line, std::move(statement));
  }

  void generation(Body& body, int line) {
    MacroForm form;
    read_body(form, "endgeneration");
    add(body, line, Generation{std::move(form.body)});
  }

  void print(Body& body, int line) {
    for (bool is_first = true; current().kind != TokenKind::block_end; is_first = false) {
      if (!is_first) expect(",");
      add(body, line, Output{expression()});
    }
  }

  int64_t n_loops_ = 0;
};

}  // namespace

Symbol Syntax::find(std::string_view name) const {
  const auto found = names.find(name);
  return found == names.end() ? nullptr : &*found;
}

Symbol Syntax::symbol(std::string_view name) {
  const auto known = find(name);
  return known ? known : &*names.emplace(name).first;
}

Syntax parse(std::string_view source, const TemplateLimits& limits) {
  if (source.size() > limits.source_bytes)
    throw TemplateError(fmt::format("the template has more than {} bytes", limits.source_bytes));
  if (const auto at = find_invalid_utf8(source))
    throw TemplateError(fmt::format("the template is not UTF-8 at byte {}", *at));
  return StatementParser(read_tokens(source), limits).syntax();
}

}  // namespace zoo::templates
