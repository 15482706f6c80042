#include "io/formats/unpickler.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/text.h"
#include "io/formats/pickle_bytes.h"
#include "io/formats/pickle_calls.h"
#include "io/formats/pickle_operations.h"

namespace zoo {
namespace {

using Op = PickleOp;

class Unpickler {
 public:
  Unpickler(const FileBytes& file, uint64_t begin, uint64_t end, PickleValues& to)
      : file_(file),
        bytes_(file, begin, std::min(end, begin + std::min(end - begin, kMostPickleBytes))),
        to_(to) {}

  ValueId run() {
    for (;;) {
      const auto op = static_cast<Op>(bytes_.byte());
      if (op == Op::stop) return pop();
      if (!(add_number(op) || add_text(op) || add_group(op) || change_group(op) || use_memo(op) ||
            use_name(op) || move_stack(op)))
        fail("has the operation {:#04x}, which protocols 2 to 5 of torch.save() do not use",
             static_cast<int>(op));
    }
  }
  uint64_t position() const { return bytes_.position(); }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    file_.fail("damaged or not of PyTorch: its pickle {} (at byte {})",
               fmt::format(format, std::forward<Args>(args)...), bytes_.position());
  }

  void push(ValueId id) {
    // Each is a reference in a list or on the stack.
    if (stack_.size() >= kMostPickleValues || ++n_pushed_ > 8 * kMostPickleValues)
      fail("holds more than {} values", kMostPickleValues);
    stack_.push_back(id);
  }
  void add(PickleValue value) {
    if (to_.values.size() >= kMostPickleValues) fail("holds more than {} values", kMostPickleValues);
    push(to_.add(std::move(value)));
  }
  ValueId top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes a value that is not there");
    return stack_.back();
  }
  ValueId pop() {
    const auto id = top();
    stack_.pop_back();
    return id;
  }
  std::vector<ValueId> pop_to_mark() {
    if (marks_.empty()) fail("ends a group that has not begun");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<ValueId> result(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return result;
  }
  std::vector<ValueId> pop_last(size_t n) {
    std::vector<ValueId> result(n);
    for (size_t i = n; i-- > 0;) result[i] = pop();
    return result;
  }

  bool add_number(Op op) {
    switch (op) {
      case Op::none:
        add({});
        return true;
      case Op::newtrue:
      case Op::newfalse:
        add({PickleKind::boolean, op == Op::newtrue});
        return true;
      case Op::binint:
        add({PickleKind::integer, int64_t{static_cast<int32_t>(bytes_.number(4))}});
        return true;
      case Op::binint1:
        add({PickleKind::integer, static_cast<int64_t>(bytes_.number(1))});
        return true;
      case Op::binint2:
        add({PickleKind::integer, static_cast<int64_t>(bytes_.number(2))});
        return true;
      case Op::long1:
        add_long(bytes_.number(1));
        return true;
      case Op::long4:
        add_long(bytes_.number(4));
        return true;
      case Op::binfloat: {
        auto digits = bytes_.take(8);  // the highest byte first
        std::ranges::reverse(digits);
        add({PickleKind::real, std::bit_cast<double>(little_endian_number(digits, 0, 8))});
        return true;
      }
      default:
        return false;
    }
  }

  /// An integer in two's complement.
  void add_long(uint64_t n_bytes) {
    auto bytes = bytes_.take(n_bytes);
    if (bytes.size() > sizeof(int64_t)) return add({PickleKind::large, std::move(bytes)});
    const bool is_negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
    bytes.resize(sizeof(int64_t), is_negative ? '\xff' : '\0');
    add({PickleKind::integer, static_cast<int64_t>(little_endian_number(bytes, 0, sizeof(int64_t)))});
  }

  bool add_text(Op op) {
    size_t size_bytes = 0;
    switch (op) {
      case Op::short_binstring:
      case Op::short_binunicode:
      case Op::short_binbytes:
        size_bytes = 1;
        break;
      case Op::binstring:
      case Op::binunicode:
      case Op::binbytes:
        size_bytes = 4;
        break;
      case Op::binunicode8:
      case Op::binbytes8:
      case Op::bytearray8:
        size_bytes = 8;
        break;
      default:
        return false;
    }
    const auto size = bytes_.number(size_bytes);
    add({PickleKind::text, bytes_.take(size)});
    return true;
  }

  bool add_group(Op op) {
    using Elements = std::vector<ValueId>;
    switch (op) {
      case Op::empty_tuple:
        add({PickleKind::tuple, Elements{}});
        return true;
      case Op::tuple1:
      case Op::tuple2:
      case Op::tuple3:
        add({PickleKind::tuple, pop_last(1 + static_cast<size_t>(op) - static_cast<size_t>(Op::tuple1))});
        return true;
      case Op::tuple:
        add({PickleKind::tuple, pop_to_mark()});
        return true;
      case Op::empty_list:
      case Op::empty_set:
        add({PickleKind::list, Elements{}});
        return true;
      case Op::list:
      case Op::frozenset:
        add({PickleKind::list, pop_to_mark()});
        return true;
      case Op::empty_dict:
        add({PickleKind::dict, Elements{}});
        return true;
      case Op::dict: {
        auto items = pop_to_mark();
        if (items.size() % 2 != 0) fail("has a key without a value");
        add({PickleKind::dict, std::move(items)});
        return true;
      }
      default:
        return false;
    }
  }

  bool change_group(Op op) {
    switch (op) {
      case Op::append:
        extend(PickleKind::list, pop_last(1));
        return true;
      case Op::appends:
      case Op::additems:
        extend(PickleKind::list, pop_to_mark());
        return true;
      case Op::setitem:
        extend(PickleKind::dict, pop_last(2));
        return true;
      case Op::setitems:
        extend(PickleKind::dict, pop_to_mark());
        return true;
      case Op::build:
        build(pop());
        return true;
      default:
        return false;
    }
  }

  void extend(PickleKind kind, const std::vector<ValueId>& more) {
    auto& value = to_.values[top()];
    if (value.kind != kind || (kind == PickleKind::dict && more.size() % 2 != 0))
      fail("adds elements to what has none");
    value.elements().insert(value.elements().end(), more.begin(), more.end());
  }

  /// Attributes: those of a namespace are what it holds; of a dict (`_metadata`) and of tensors they are left
  /// out.
  void build(ValueId state) {
    auto& value = to_.values[top()];
    if (value.kind == PickleKind::object) {
      if (!to_.is(state, PickleKind::dict) || state == top()) fail("gives a namespace no attributes");
      const auto& more = to_[state].elements();
      spend(more.size());
      value.elements().insert(value.elements().end(), more.begin(), more.end());
    } else if (value.kind != PickleKind::dict && value.kind != PickleKind::tensor) {
      fail("gives attributes to what has none");
    }
  }

  bool use_memo(Op op) {
    switch (op) {
      case Op::memoize:
        return remember(memo_.size());
      case Op::binput:
        return remember(bytes_.number(1));
      case Op::long_binput:
        return remember(bytes_.number(4));
      case Op::binget:
        return recall(bytes_.number(1));
      case Op::long_binget:
        return recall(bytes_.number(4));
      default:
        return false;
    }
  }
  bool remember(uint64_t number) {
    if (memo_.size() >= kMostPickleValues) fail("remembers more than {} values", kMostPickleValues);
    memo_[number] = top();
    return true;
  }
  bool recall(uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) fail("recalls value {}, which it has not remembered", number);
    push(found->second);
    return true;
  }

  bool use_name(Op op) {
    switch (op) {
      case Op::global: {
        const auto module = bytes_.line();
        add_global(module, bytes_.line());
        return true;
      }
      case Op::stack_global: {
        const auto names = pop_last(2);
        if (!to_.is(names[0], PickleKind::text) || !to_.is(names[1], PickleKind::text))
          fail("has a name that is no text");
        add_global(to_[names[0]].text(), to_[names[1]].text());
        return true;
      }
      case Op::reduce:
      case Op::newobj: {
        const auto call = pop_last(2);
        const auto result = called(to_, call[0], call[1]);
        if (!result) fail("calls {} in a way that is not known", name_of(call[0]));
        const auto& made = to_[*result];
        spend(made.kind == PickleKind::dict ? made.elements().size() : 0);
        push(*result);
        return true;
      }
      case Op::binpersid: {
        const auto storage = persistent_storage(to_, pop());
        if (!storage) fail("refers to numbers outside of it in a way that is not known");
        spend(0);
        push(*storage);
        return true;
      }
      default:
        return false;
    }
  }

  void add_global(const std::string& module, const std::string& name) {
    auto full = excerpt(module) + "." + excerpt(name);
    if (!is_known_global(full)) {
      file_.fail(
          "it needs '{}' of Python, which is not run: only tensors and plain values are read; in Python, "
          "save model.state_dict() alone",
          full);
    }
    add({PickleKind::global, std::move(full)});
  }
  std::string name_of(ValueId id) const {
    return to_.is(id, PickleKind::global) ? fmt::format("'{}'", to_[id].text()) : "what is no function";
  }

  bool move_stack(Op op) {
    switch (op) {
      case Op::proto:
        if (const auto version = bytes_.byte(); version < 2 || version > 5)
          fail("has protocol {}; 2 to 5 are read", version);
        return true;
      case Op::frame:
        bytes_.number(8);
        return true;
      case Op::mark:
        if (marks_.size() >= kMostPickleValues) fail("holds more than {} groups", kMostPickleValues);
        marks_.push_back(stack_.size());
        return true;
      case Op::pop:
        // Python ends an empty group so.
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return true;
      case Op::pop_mark:
        pop_to_mark();
        return true;
      case Op::dup:
        push(top());
        return true;
      default:
        return false;
    }
  }

  /// Counts elements that are copied, as push() counts those that are read.
  void spend(size_t n) {
    n_pushed_ += n;
    if (n_pushed_ > 8 * kMostPickleValues || to_.values.size() > kMostPickleValues)
      fail("holds more than {} values", kMostPickleValues);
  }

  const FileBytes& file_;
  PickleBytes bytes_;
  PickleValues& to_;
  std::vector<ValueId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, ValueId> memo_;
  size_t n_pushed_ = 0;
};

}  // namespace

ValueId unpickle(const FileBytes& file, uint64_t& begin, uint64_t end, PickleValues& to) {
  Unpickler unpickler(file, begin, end, to);
  const auto result = unpickler.run();
  begin = unpickler.position();
  return result;
}

}  // namespace zoo
