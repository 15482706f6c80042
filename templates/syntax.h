#pragma once
// Templates as trees. The nodes belong to a Syntax; they point to each other.

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "templates/values/operators.h"
#include "templates/values/value.h"

namespace zoo::templates {

/// A name of a variable; equal names are one object.
using Symbol = const std::string*;

struct Expression;
struct Statement;
using Operand = const Expression*;
using Body = std::vector<const Statement*>;

struct CallArguments {
  std::vector<Operand> positional;
  std::vector<std::pair<std::string, Operand>> named;
  Operand more_positional = nullptr, more_named = nullptr;  // *list, **dictionary
};

// ---- expressions

struct Literal {
  Value value;
};
struct Name {
  Symbol symbol;
};
struct ListForm {
  Kind kind;  // list or tuple
  std::vector<Operand> items;
};
struct DictForm {
  std::vector<std::pair<Operand, Operand>> members;
};
struct Arithmetic {
  Operator op;
  Operand left, right;
};
enum class Sign { plus, minus, negation };
struct Signed {
  Sign sign;
  Operand operand;
};
struct Concatenation {
  std::vector<Operand> parts;
};
enum class Junction { both, either };
struct Junctor {
  Junction kind;
  Operand left, right;
};
struct Comparison {
  Operand first;
  std::vector<std::pair<Comparator, Operand>> rest;
};
struct Conditional {
  Operand condition, then, otherwise;  // otherwise may be null
};
struct Member {
  Operand of;
  std::string name;
};
struct Item {
  Operand of, key;
};
struct Slice {
  Operand of, begin, end, step;  // null: not given
};
struct Call {
  Operand function;
  CallArguments arguments;
};
/// `operand` is null where a block stands in its place.
struct Filter {
  Operand operand;
  std::string name;
  CallArguments arguments;
};
struct Test {
  Operand operand;
  std::string name;
  CallArguments arguments;
};

struct Expression {
  int line;
  std::variant<Literal, Name, ListForm, DictForm, Arithmetic, Signed, Concatenation, Junctor, Comparison,
               Conditional, Member, Item, Slice, Call, Filter, Test>
      form;
};

// ---- statements

/// Where a value goes: a name, an attribute of a namespace, or a tuple of those.
struct Target {
  Symbol symbol = nullptr;
  std::string attribute;  // of the namespace `symbol`; empty: the name itself
  std::vector<Target> parts;
};

struct Parameter {
  Symbol symbol;
  Operand otherwise;  // null: none
};
/// What can be called: its parameters and its body.
struct MacroForm {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Data {
  std::string text;
};
struct Output {
  Operand value;
};
struct Branch {
  Operand condition;  // null: else
  Body body;
};
struct If {
  std::vector<Branch> branches;
};
struct For {
  Target target;
  Operand items, condition;  // condition may be null
  Body body, otherwise;
};
struct Set {
  Target target;
  Operand value;
};
struct SetBlock {
  Target target;
  Operand filter;  // null: none
  Body body;
};
struct With {
  std::vector<std::pair<Target, Operand>> values;
  Body body;
};
struct FilterBlock {
  Operand filter;
  Body body;
};
struct MacroStatement {
  Symbol symbol;
  MacroForm macro;
};
struct CallBlock {
  Operand call;
  MacroForm caller;
};
struct Generation {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line;
  std::variant<Data, Output, If, For, Set, SetBlock, With, FilterBlock, MacroStatement, CallBlock, Generation,
               Break, Continue>
      form;
};

struct Syntax {
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  std::set<std::string, std::less<>> names;
  Body body;

  Symbol symbol(std::string_view name);
  /// Null if the template does not have this name.
  Symbol find(std::string_view name) const;
};

}  // namespace zoo::templates
