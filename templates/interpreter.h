#pragma once
// One rendering of a template.

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "templates/syntax.h"
#include "templates/text_template.h"

namespace zoo::templates {

/// The variables of a part of a template, and of the parts around it.
struct Scope {
  std::vector<std::pair<Symbol, Value>> variables;
  std::shared_ptr<Scope> parent;

  void set(Symbol symbol, Value value);
  /// Null if there is none, also not around it. Looking through many variables is charged.
  const Value* find(Budget& budget, Symbol symbol) const;
};

class Interpreter {
 public:
  Interpreter(const Syntax& syntax, const TemplateLimits& limits, const std::tm& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Throws TemplateError.
  RenderedText render(const nlohmann::ordered_json& variables);

  /// What a macro returns. Throws Problem.
  Value call_macro(const MacroForm& form, const std::shared_ptr<Scope>& around, const Arguments& arguments);

 private:
  // evaluate.cpp
  Value evaluate(Operand operand);
  Value evaluate_form(const Literal& form);
  Value evaluate_form(const Name& form);
  Value evaluate_form(const ListForm& form);
  Value evaluate_form(const DictForm& form);
  Value evaluate_form(const Arithmetic& form);
  Value evaluate_form(const Signed& form);
  Value evaluate_form(const Concatenation& form);
  Value evaluate_form(const Junctor& form);
  Value evaluate_form(const Comparison& form);
  Value evaluate_form(const Conditional& form);
  Value evaluate_form(const Member& form);
  Value evaluate_form(const Item& form);
  Value evaluate_form(const Slice& form);
  Value evaluate_form(const Call& form);
  Value evaluate_form(const Filter& form);
  Value evaluate_form(const Test& form);
  Arguments arguments_of(const CallArguments& form);
  Value call(const Value& function, const Arguments& arguments);
  /// The filters of a block on its text.
  Value filter_block(Operand filter, Value text);

  // execute.cpp
  enum class Flow { on, breaks, continues };
  Flow execute(const Body& body);
  Flow capture(const Body& body, std::string& text);
  Flow execute_form(const Data& form);
  Flow execute_form(const Output& form);
  Flow execute_form(const If& form);
  Flow execute_form(const For& form);
  Flow execute_form(const Set& form);
  Flow execute_form(const SetBlock& form);
  Flow execute_form(const With& form);
  Flow execute_form(const FilterBlock& form);
  Flow execute_form(const MacroStatement& form);
  Flow execute_form(const CallBlock& form);
  Flow execute_form(const Generation& form);
  Flow execute_form(const Break&) { return Flow::breaks; }
  Flow execute_form(const Continue&) { return Flow::continues; }
  void assign(const Target& target, const Value& value);
  void write(std::string_view text);
  Value macro_value(const MacroForm& form);
  void count_generated_in_bytes();

  // functions.cpp
  void add_functions();

  class Deeper;
  class NewScope;
  class NewOutput;

  const Syntax& syntax_;
  Budget budget_;
  const std::tm& now_;
  std::shared_ptr<Scope> scope_;
  std::string* output_;
  RenderedText result_;
  // Spans count code points until the rendering ends.
  size_t n_counted_ = 0, n_code_points_ = 0;
  int64_t depth_ = 0, loop_depth_ = 0;
  int line_ = 1;
  // Macros and namespaces can hold each other, so they are emptied at the end.
  std::vector<std::shared_ptr<Scope>> captured_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

/// Counts nested evaluations.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : depth_(interpreter.depth_) {
    if (depth_ >= interpreter.budget_.limits().depth) throw Problem("the template calls itself too deeply");
    ++depth_;
  }
  ~Deeper() { --depth_; }

 private:
  int64_t& depth_;
};

/// Opens a scope while it lives.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter& interpreter, std::shared_ptr<Scope> around)
      : interpreter_(interpreter), before_(std::move(interpreter.scope_)) {
    interpreter.scope_ = std::make_shared<Scope>();
    interpreter.scope_->parent = std::move(around);
  }
  explicit NewScope(Interpreter& interpreter) : NewScope(interpreter, interpreter.scope_) {}
  ~NewScope() { interpreter_.scope_ = std::move(before_); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> before_;
};

/// Sends the output to `text` while it lives.
class Interpreter::NewOutput {
 public:
  NewOutput(Interpreter& interpreter, std::string& text)
      : interpreter_(interpreter), before_(std::exchange(interpreter.output_, &text)) {}
  ~NewOutput() { interpreter_.output_ = before_; }

 private:
  Interpreter& interpreter_;
  std::string* before_;
};

}  // namespace zoo::templates
