// What statements do.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "templates/interpreter.h"
#include "templates/lexer.h"
#include "templates/values/python_text.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

class Macro final : public Callable {
 public:
  Macro(Interpreter& interpreter, const MacroForm& form, std::shared_ptr<Scope> around)
      : interpreter_(interpreter), form_(form), around_(std::move(around)) {}
  Value call(const Arguments& arguments) const override {
    return interpreter_.call_macro(form_, around_, arguments);
  }
  std::string name() const override { return form_.name; }

 private:
  Interpreter& interpreter_;
  const MacroForm& form_;
  std::shared_ptr<Scope> around_;
};

}  // namespace

void Scope::set(Symbol symbol, Value value) {
  for (auto& [known, old] : variables) {
    if (known == symbol) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

const Value* Scope::find(Budget& budget, Symbol symbol) const {
  for (const auto* scope = this; scope; scope = scope->parent.get()) {
    budget.step(scope->variables.size() / 16);
    for (const auto& [known, value] : scope->variables) {
      if (known == symbol) return &value;
    }
  }
  return nullptr;
}

Interpreter::Interpreter(const Syntax& syntax, const TemplateLimits& limits, const std::tm& now)
    : syntax_(syntax),
      budget_(limits),
      now_(now),
      scope_(std::make_shared<Scope>()),
      output_(&result_.text) {}

Interpreter::~Interpreter() {
  for (const auto& scope : captured_) scope->variables.clear();
  for (const auto& name_space : namespaces_) name_space->attributes.clear();
}

RenderedText Interpreter::render(const nlohmann::ordered_json& variables) {
  try {
    add_functions();
    // Values of the caller are not charged to the template.
    constexpr TemplateLimits none{.steps = INT64_MAX, .value_bytes = SIZE_MAX};
    Budget given(none);
    for (const auto& [name, value] : variables.items()) {
      if (const auto symbol = syntax_.find(name)) scope_->set(symbol, from_json(given, value));
    }
    const NewScope variables_of_template(*this);
    execute(syntax_.body);
    count_generated_in_bytes();
    return std::move(result_);
  } catch (const Problem& problem) {
    fail_at(line_, problem.what());
  }
}

void Interpreter::count_generated_in_bytes() {
  // The places ascend, except that those within a macro may overlap.
  size_t point = 0, byte = 0;
  const auto byte_at = [&](size_t wanted) {
    if (wanted < point) {
      point = byte = 0;
      budget_.read(result_.text.size());
    }
    byte += byte_of_code_point(std::string_view(result_.text).substr(byte), wanted - point);
    point = wanted;
    return byte;
  };
  for (auto& [begin, end] : result_.generated) {
    begin = byte_at(begin);
    end = byte_at(end);
  }
}

void Interpreter::write(std::string_view text) {
  budget_.step(text.size() / 64);
  const size_t most = output_ == &result_.text ? budget_.limits().output_bytes : budget_.limits().value_bytes;
  if (text.size() > most - std::min(most, output_->size()))
    throw Problem("the template writes more text than it may");
  if (output_ != &result_.text) budget_.make(text.size());
  *output_ += text;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Deeper deeper(*this);
  for (const auto* statement : body) {
    budget_.step();
    line_ = statement->line;
    const auto flow = std::visit([this](const auto& form) { return execute_form(form); }, statement->form);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const Data& form) {
  write(form.text);
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const Output& form) {
  const auto value = evaluate(form.value);
  const auto* const text = value.as_text();
  write(text ? *text : str(budget_, value));
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const If& form) {
  for (const auto& branch : form.branches) {
    if (!branch.condition || is_true(evaluate(branch.condition))) return execute(branch.body);
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const For& form) {
  const auto items = evaluate(form.items);
  const auto all = items_of(budget_, items);
  size_t next = 0;
  // The condition is evaluated when the loop reaches an item or looks ahead. It does not see variables of the
  // body.
  const auto around = scope_;
  const auto loop = std::make_shared<Loop>(
      [&]() -> std::optional<Value> {
        while (next < all.size()) {
          const auto& item = all[next++];
          budget_.step();
          if (!form.condition) return item;
          const NewScope scope(*this, around);
          assign(form.target, item);
          if (is_true(evaluate(form.condition))) return item;
        }
        return std::nullopt;
      },
      loop_depth_);
  const auto loop_symbol = syntax_.find("loop");
  struct Closing {
    Loop& loop;
    int64_t& depth;
    ~Closing() {
      loop.close();
      --depth;
    }
  };
  ++loop_depth_;
  const Closing closing{*loop, loop_depth_};
  bool is_empty = true;
  while (const auto* item = loop->next()) {
    is_empty = false;
    const NewScope scope(*this);
    if (loop_symbol) scope_->set(loop_symbol, loop);
    assign(form.target, Value(*item));
    if (execute(form.body) == Flow::breaks) return Flow::on;
  }
  if (!is_empty) return Flow::on;
  const NewScope scope(*this);
  return execute(form.otherwise);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const auto items = items_of(budget_, value);
    if (items.size() != target.parts.size()) {
      throw Problem(fmt::format("{} values are needed, and there are {}", target.parts.size(), items.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  budget_.step(scope_->variables.size() / 16);
  if (target.attribute.empty()) return scope_->set(target.symbol, value);
  const auto* const found = scope_->find(budget_, target.symbol);
  const auto* const name_space = found ? found->as<std::shared_ptr<Namespace>>() : nullptr;
  if (!name_space)
    throw Problem(fmt::format("'{}' is no namespace, so it gets no attributes", *target.symbol));
  (*name_space)->set(budget_, target.attribute, value);
}

Interpreter::Flow Interpreter::execute_form(const Set& form) {
  assign(form.target, evaluate(form.value));
  return Flow::on;
}

/// Executes `body` in a scope of its own; what it writes goes to `text`.
Interpreter::Flow Interpreter::capture(const Body& body, std::string& text) {
  const NewScope scope(*this);
  const NewOutput output(*this, text);
  return execute(body);
}

Interpreter::Flow Interpreter::execute_form(const SetBlock& form) {
  std::string body;
  if (const auto flow = capture(form.body, body); flow != Flow::on) return flow;
  assign(form.target, filter_block(form.filter, text(budget_, std::move(body))));
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const With& form) {
  std::vector<Value> values;
  for (const auto& [target, value] : form.values) values.push_back(evaluate(value));
  const NewScope scope(*this);
  for (size_t i = 0; i < values.size(); ++i) assign(form.values[i].first, values[i]);
  return execute(form.body);
}

Interpreter::Flow Interpreter::execute_form(const FilterBlock& form) {
  std::string body;
  if (const auto flow = capture(form.body, body); flow != Flow::on) return flow;
  write(str(budget_, filter_block(form.filter, text(budget_, std::move(body)))));
  return Flow::on;
}

Value Interpreter::macro_value(const MacroForm& form) {
  budget_.make(sizeof(Macro) + sizeof(Scope) + scope_->variables.size() * sizeof(Value));
  if (captured_.empty() || captured_.back() != scope_) captured_.push_back(scope_);
  return std::shared_ptr<const Callable>(std::make_shared<const Macro>(*this, form, scope_));
}

Interpreter::Flow Interpreter::execute_form(const MacroStatement& form) {
  scope_->set(form.symbol, macro_value(form.macro));
  return Flow::on;
}

Value Interpreter::call_macro(const MacroForm& form, const std::shared_ptr<Scope>& around,
                              const Arguments& arguments) {
  const Deeper deeper(*this);
  const NewScope scope(*this, around);
  auto named = arguments.named;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    for (auto it = named.begin(); it != named.end(); ++it) {
      if (it->first != name) continue;
      auto value = std::move(it->second);
      named.erase(it);
      return value;
    }
    return std::nullopt;
  };
  bool has_caller = false;
  const size_t n_given = arguments.positional.size(), n_parameters = form.parameters.size();
  budget_.step(n_parameters * (n_parameters + named.size()) / 16);
  std::vector<const Parameter*> missing;
  for (size_t i = 0; i < form.parameters.size(); ++i) {
    const auto& parameter = form.parameters[i];
    has_caller = has_caller || *parameter.symbol == "caller";
    if (i < n_given) {
      scope_->set(parameter.symbol, arguments.positional[i]);
    } else if (auto value = take_named(*parameter.symbol)) {
      scope_->set(parameter.symbol, *value);
    } else {
      missing.push_back(&parameter);
    }
  }
  if (form.uses_caller && !has_caller) {
    const auto caller = take_named("caller");
    scope_->set(syntax_.find("caller"), caller ? *caller : undefined("there is no caller"));
  }
  for (const auto* parameter : missing) {
    scope_->set(parameter->symbol,
                parameter->otherwise
                    ? evaluate(parameter->otherwise)
                    : undefined(fmt::format("'{}' was not given to {}", *parameter->symbol, form.name)));
  }
  if (form.uses_kwargs) {
    std::vector<std::pair<Value, Value>> members;
    for (auto& [name, value] : named) members.emplace_back(text(budget_, name), std::move(value));
    scope_->set(syntax_.find("kwargs"), dict(budget_, std::move(members)));
  } else if (!named.empty()) {
    throw Problem(fmt::format("the macro '{}' has no argument '{}'", form.name, named[0].first));
  }
  const auto rest = n_given - std::min(n_given, form.parameters.size());
  if (form.uses_varargs) {
    std::vector<Value> more(arguments.positional.end() - static_cast<ptrdiff_t>(rest),
                            arguments.positional.end());
    scope_->set(syntax_.find("varargs"), sequence(budget_, Kind::tuple, std::move(more)));
  } else if (rest > 0) {
    throw Problem(
        fmt::format("the macro '{}' takes at most {} arguments", form.name, form.parameters.size()));
  }
  std::string result;
  {
    const NewOutput output(*this, result);
    execute(form.body);
  }
  return text(budget_, std::move(result));
}

Interpreter::Flow Interpreter::execute_form(const CallBlock& form) {
  const auto& called = std::get<Call>(form.call->form);
  const auto function = evaluate(called.function);
  auto arguments = arguments_of(called.arguments);
  arguments.named.emplace_back("caller", macro_value(form.caller));
  write(str(budget_, call(function, arguments)));
  return Flow::on;
}

Interpreter::Flow Interpreter::execute_form(const Generation& form) {
  std::string body;
  capture(form.body, body);
  // As transformers: a span begins at the length of the text so far, in code points. The text of a macro that
  // still runs does not count.
  const auto& whole = result_.text;
  n_code_points_ += count_code_points(std::string_view(whole).substr(n_counted_));
  n_counted_ = whole.size();
  result_.generated.push_back({n_code_points_, n_code_points_ + count_code_points(body)});
  write(body);
  return Flow::on;
}

}  // namespace zoo::templates
