// The values of expressions.

#include <utility>

#include <fmt/format.h>

#include "templates/filters.h"
#include "templates/interpreter.h"
#include "templates/values/members.h"
#include "templates/values/operators.h"
#include "templates/values/python_text.h"

namespace zoo::templates {

Value Interpreter::evaluate(Operand operand) {
  const Deeper deeper(*this);
  budget_.step();
  line_ = operand->line;
  return std::visit([this](const auto& form) { return evaluate_form(form); }, operand->form);
}

Value Interpreter::evaluate_form(const Literal& form) { return form.value; }

Value Interpreter::evaluate_form(const Name& form) {
  if (const auto* value = scope_->find(budget_, form.symbol)) return *value;
  return undefined(fmt::format("'{}' is undefined", *form.symbol));
}

Value Interpreter::evaluate_form(const ListForm& form) {
  std::vector<Value> items;
  items.reserve(form.items.size());
  for (const auto* item : form.items) items.push_back(evaluate(item));
  return sequence(budget_, form.kind, std::move(items));
}

Value Interpreter::evaluate_form(const DictForm& form) {
  std::vector<std::pair<Value, Value>> members;
  for (const auto& [key_form, value_form] : form.members) {
    auto key = evaluate(key_form);
    members.emplace_back(std::move(key), evaluate(value_form));
  }
  return dict(budget_, std::move(members));
}

Value Interpreter::evaluate_form(const Arithmetic& form) {
  const auto left = evaluate(form.left), right = evaluate(form.right);
  return compute(budget_, form.op, left, right);
}

Value Interpreter::evaluate_form(const Signed& form) {
  const auto value = evaluate(form.operand);
  switch (form.sign) {
    case Sign::plus:
      return plus(value);
    case Sign::minus:
      return negate(value);
    case Sign::negation:
      break;
  }
  return !is_true(value);
}

Value Interpreter::evaluate_form(const Concatenation& form) {
  std::string result;
  for (const auto* part : form.parts) {
    const auto text = str(budget_, evaluate(part));
    budget_.make(text.size());
    result += text;
  }
  return text(budget_, std::move(result));
}

Value Interpreter::evaluate_form(const Junctor& form) {
  auto left = evaluate(form.left);
  const bool decides = is_true(left) == (form.kind == Junction::either);
  return decides ? left : evaluate(form.right);
}

Value Interpreter::evaluate_form(const Comparison& form) {
  auto left = evaluate(form.first);
  for (const auto& [kind, operand] : form.rest) {
    auto right = evaluate(operand);
    if (!compare(budget_, kind, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate_form(const Conditional& form) {
  if (is_true(evaluate(form.condition))) return evaluate(form.then);
  if (form.otherwise) return evaluate(form.otherwise);
  return undefined("an inline 'if' without 'else' has no value, because its condition is false");
}

Value Interpreter::evaluate_form(const Member& form) {
  return attribute(budget_, evaluate(form.of), form.name);
}

Value Interpreter::evaluate_form(const Item& form) {
  const auto of = evaluate(form.of);
  return item(budget_, of, evaluate(form.key));
}

Value Interpreter::evaluate_form(const Slice& form) {
  const auto value = [this](Operand operand) { return operand ? evaluate(operand) : Value(); };
  const auto of = evaluate(form.of), begin = value(form.begin), end = value(form.end),
             step = value(form.step);
  return slice(budget_, of, begin, end, step);
}

Arguments Interpreter::arguments_of(const CallArguments& form) {
  Arguments result;
  for (const auto* value : form.positional) result.positional.push_back(evaluate(value));
  for (const auto& [name, value] : form.named) result.named.emplace_back(name, evaluate(value));
  if (form.more_positional) {
    for (auto& value : items_of(budget_, evaluate(form.more_positional)))
      result.positional.push_back(std::move(value));
  }
  if (form.more_named) {
    const auto more = evaluate(form.more_named);
    const auto* const members = more.as_dict();
    if (!members) throw Problem(fmt::format("** wants a dictionary, not {}", type_name(more)));
    budget_.step(members->members.size());
    for (const auto& [key, value] : members->members) {
      if (!key.as_text()) throw Problem("names of arguments are texts");
      for (const auto& named : form.named) {
        if (named.first == *key.as_text())
          throw Problem(fmt::format("the argument '{}' is given twice", named.first));
      }
      result.named.emplace_back(*key.as_text(), value);
    }
  }
  return result;
}

Value Interpreter::call(const Value& function, const Arguments& arguments) {
  if (const auto* method = function.as<std::shared_ptr<const Method>>())
    return call_method(budget_, **method, arguments);
  if (const auto* callable = function.as<std::shared_ptr<const Callable>>())
    return (*callable)->call(arguments);
  require_defined(function);
  throw Problem(fmt::format("a value of type {} cannot be called", type_name(function)));
}

Value Interpreter::evaluate_form(const Call& form) {
  const auto function = evaluate(form.function);
  const auto arguments = arguments_of(form.arguments);
  return call(function, arguments);
}

Value Interpreter::evaluate_form(const Filter& form) {
  const auto value = evaluate(form.operand);
  return apply_filter(budget_, form.name, value, arguments_of(form.arguments));
}

Value Interpreter::filter_block(Operand filter, Value text) {
  if (!filter) return text;
  const Deeper deeper(*this);
  const auto& form = std::get<Filter>(filter->form);
  const auto value = filter_block(form.operand, std::move(text));
  return apply_filter(budget_, form.name, value, arguments_of(form.arguments));
}

Value Interpreter::evaluate_form(const Test& form) {
  const auto value = evaluate(form.operand);
  return apply_test(budget_, form.name, value, arguments_of(form.arguments));
}

}  // namespace zoo::templates
