#pragma once
// Tokens to trees, by the grammar of jinja2 3.1.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/lexer.h"
#include "templates/syntax.h"

namespace zoo::templates {

/// The tree of a template. Throws TemplateError.
Syntax parse(std::string_view source, const TemplateLimits& limits);

/// Expressions (expression_parser.cpp). The last token is `end`, so that there always is a current one.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const TemplateLimits& limits)
      : tokens_(std::move(tokens)), limits_(limits), budget_(limits) {}

 protected:
  enum class Inline { allowed, refused };  // X if C else Y

  Operand expression(Inline conditions = Inline::allowed);
  /// An expression, or several with commas between them as a tuple. It ends before the name `end`, too.
  Operand tuple(Inline conditions = Inline::allowed, std::string_view end = {});
  Operand primary();
  /// `operand` | filter | filter; null for `operand` stands for a block.
  Operand filters(Operand operand);
  Operand filter_after_bar(Operand operand);

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool skip(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect(std::string_view sign);
  std::string expect_name();
  [[noreturn]] void fail(std::string_view message) const { fail_at(current().line, message); }
  [[noreturn]] void fail_unexpected(std::string_view expected) const;
  template <class Form>
  Operand make(int line, Form form) {
    return &syntax_.expressions.emplace_back(Expression{line, std::move(form)});
  }

  /// Forms within each other while this object lives.
  class Deeper {
   public:
    explicit Deeper(ExpressionParser& parser) : depth_(parser.depth_) {
      if (++depth_ > parser.limits_.source_depth) parser.fail("the template is nested too deeply");
    }
    ~Deeper() { --depth_; }

   private:
    int64_t& depth_;
  };

  Syntax syntax_;
  /// Macros whose body is being read, outermost first.
  std::vector<MacroForm*> macros_;

 private:
  Operand either();
  Operand both();
  Operand negation();
  Operand comparison();
  Operand sum();
  Operand concatenation();
  Operand product();
  Operand power();
  Operand signed_operand(bool with_filters);
  Operand list_form();
  Operand dict_form();
  Operand postfix(Operand operand);
  Operand filters_and_tests(Operand operand);
  Operand subscript(Operand operand);
  Operand test(Operand operand);
  CallArguments call_arguments();
  std::optional<Comparator> comparator();

  std::vector<Token> tokens_;
  const TemplateLimits& limits_;
  Budget budget_;
  size_t at_ = 0;
  int64_t depth_ = 0;
};

}  // namespace zoo::templates
