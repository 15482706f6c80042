// Functions that every template has.

#include <functional>
#include <utility>

#include <fmt/format.h>

#include "templates/interpreter.h"
#include "templates/values/arguments.h"
#include "templates/values/formatting.h"
#include "templates/values/python_text.h"

namespace zoo::templates {
namespace {

class BuiltIn final : public Callable {
 public:
  using Work = std::function<Value(const Arguments&)>;
  BuiltIn(std::string name, Work work) : name_(std::move(name)), work_(std::move(work)) {}
  Value call(const Arguments& arguments) const override { return work_(arguments); }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  Work work_;
};

Value range(Budget& budget, const Arguments& arguments) {
  const Bound bound("range", arguments, {"start", "stop", "step"}, 1);
  int64_t begin = bound.integer(0, 0), end = 0;
  const int64_t step = bound.integer(2, 1);
  if (bound.find(1)) {
    end = bound.integer(1, 0);
  } else {
    end = std::exchange(begin, 0);
  }
  if (step == 0) throw Problem("range: the step is 0");
  const auto most = static_cast<uint64_t>(budget.limits().range_items);
  std::vector<Value> items;
  if (step > 0 ? begin < end : begin > end) {
    const auto distance =
        static_cast<uint64_t>(step > 0 ? end : begin) - static_cast<uint64_t>(step > 0 ? begin : end);
    const auto stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    const uint64_t n = (distance - 1) / stride + 1;
    if (n > most) throw Problem(fmt::format("range: more than {} numbers", most));
    budget.make(static_cast<size_t>(n) * sizeof(Value));
    items.reserve(static_cast<size_t>(n));
    for (uint64_t i = 0; i < n; ++i)
      items.push_back(static_cast<int64_t>(static_cast<uint64_t>(begin) + i * static_cast<uint64_t>(step)));
  }
  return sequence(budget, Kind::range, std::move(items));
}

/// The members for dict(…) and namespace(…): from a dictionary or pairs, then from named arguments.
std::vector<std::pair<Value, Value>> members_of(Budget& budget, std::string_view name,
                                                const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> members;
  if (arguments.positional.size() > 1) throw Problem(fmt::format("{} takes at most one value", name));
  if (!arguments.positional.empty()) {
    const auto& given = arguments.positional[0];
    if (given.as_dict()) {
      members = given.as_dict()->members;
      budget.step(members.size());
    } else {
      for (const auto& pair : items_of(budget, given)) {
        auto both = items_of(budget, pair);
        if (both.size() != 2) throw Problem(fmt::format("{}: pairs of keys and values are expected", name));
        members.emplace_back(both[0], both[1]);
      }
    }
  }
  for (const auto& [key, value] : arguments.named) members.emplace_back(text(budget, key), value);
  return members;
}

[[noreturn]] void raise(Budget& budget, const Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"}, 1);
  throw Problem(str(budget, bound.at(0)));
}

}  // namespace

void Interpreter::add_functions() {
  const auto add = [&](const char* name, BuiltIn::Work work) {
    if (const auto symbol = syntax_.find(name))
      scope_->set(symbol,
                  std::shared_ptr<const Callable>(std::make_shared<const BuiltIn>(name, std::move(work))));
  };
  add("range", [this](const Arguments& arguments) { return range(budget_, arguments); });
  add("dict",
      [this](const Arguments& arguments) { return dict(budget_, members_of(budget_, "dict", arguments)); });
  add("namespace", [this](const Arguments& arguments) -> Value {
    const auto result = std::make_shared<Namespace>();
    budget_.make(sizeof(Namespace) + sizeof(result));
    for (auto& [key, value] : members_of(budget_, "namespace", arguments)) {
      result->set(budget_, str(budget_, key), std::move(value));
    }
    namespaces_.push_back(result);
    return result;
  });
  add("raise_exception", [this](const Arguments& arguments) -> Value { raise(budget_, arguments); });
  add("strftime_now", [this](const Arguments& arguments) {
    const Bound bound("strftime_now", arguments, {"format"}, 1);
    return text(budget_, date_text(budget_, bound.text(0), now_));
  });
  // In Jinja `self` has the template's blocks. There are none.
  if (const auto self = syntax_.find("self")) scope_->set(self, std::make_shared<Namespace>());
  for (const char* name : {"lipsum", "cycler", "joiner"}) {
    add(name, [name](const Arguments&) -> Value {
      throw Problem(fmt::format("the function '{}' is not supported", name));
    });
  }
}

}  // namespace zoo::templates
