#include "interop/rules/tensor_rules.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

using Shape = std::vector<int64_t>;

std::string in_layer(std::string name, int64_t layer) {
  const auto at = name.find("{}");
  if (at == name.npos) return name;
  return name.replace(at, 2, std::to_string(layer));
}

TensorRule in_layer(TensorRule rule, int64_t layer) {
  for (auto* names : {&rule.ours, &rule.theirs}) {
    for (auto& name : *names) name = in_layer(name, layer);
  }
  return rule;
}

/// A tensor of one side of a stack.
struct Part {
  std::string name;
  Shape shape;
};

/// The rows of `from`, one below the other, are the rows of `to`. On a side that is transposed the rows of a
/// matrix are its columns.
struct RowStack {
  std::vector<Part> from, to;
  Move move = Move::plain;
  enum class Transposed { neither, from, to } transposed = Transposed::neither;

  bool is_plain() const { return move == Move::plain && from.size() == 1 && to.size() == 1; }
};

int64_t n_rows(const Part& part, bool transposed) {
  return part.shape[transposed && part.shape.size() == 2 ? 1 : 0];
}

torch::Tensor rows_first(const torch::Tensor& tensor, bool transposed) {
  return transposed && tensor.dim() == 2 ? tensor.t() : tensor;
}

/// Tensors of another source, by stacks.
class StackedTensors final : public TensorSource {
 public:
  StackedTensors(std::shared_ptr<const TensorSource> source, std::vector<RowStack> stacks)
      : source_(std::move(source)), stacks_(std::move(stacks)) {
    for (size_t i = 0; i < stacks_.size(); ++i) {
      for (size_t j = 0; j < stacks_[i].to.size(); ++j)
        places_.emplace(stacks_[i].to[j].name, std::pair(i, j));
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, place] : places_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return places_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto [number, index] = places_.at(name);
    return stacks_[number].to[index].shape;
  }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto& from = stacks_[places_.at(name).first].from;
    auto type = source_->dtype(from.front().name);
    for (const auto& part : from) type = c10::promoteTypes(type, source_->dtype(part.name));
    return type;
  }
  std::string place() const override { return source_->place(); }

  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto [number, index] = places_.at(name);
    const RowStack& stack = stacks_[number];
    const auto& first = stack.from.front();
    const torch::NoGradGuard no_grad;
    if (stack.is_plain()) return source_->read_into(to, first.name);
    if (stack.move == Move::reshaped) {
      torch::Tensor(to).copy_(source_->tensor(first.name).view(to.sizes()));
      return;
    }
    const bool from_columns = stack.transposed == RowStack::Transposed::from;
    const bool to_columns = stack.transposed == RowStack::Transposed::to;
    int64_t begin = 0;
    for (size_t i = 0; i < index; ++i) begin += n_rows(stack.to[i], to_columns);
    const int64_t end = begin + n_rows(stack.to[index], to_columns);
    const auto target = rows_first(to, to_columns);
    int64_t part_begin = 0;
    for (const auto& part : stack.from) {
      const int64_t part_end = part_begin + n_rows(part, from_columns);
      const int64_t low = std::max(begin, part_begin), high = std::min(end, part_end);
      if (low < high) {
        const auto rows = rows_first(source_->tensor(part.name), from_columns);
        target.narrow(0, low - begin, high - low).copy_(rows.narrow(0, low - part_begin, high - low));
      }
      part_begin = part_end;
    }
  }

 private:
  std::shared_ptr<const TensorSource> source_;
  std::vector<RowStack> stacks_;
  std::map<std::string, std::pair<size_t, size_t>> places_;  // of a name: stack, index in it
};

/// The tensors of another source, and computed ones in the type of its first tensor.
class WithBuffers final : public TensorSource {
 public:
  WithBuffers(std::shared_ptr<const TensorSource> source, std::map<std::string, torch::Tensor> buffers)
      : source_(std::move(source)),
        buffers_(std::move(buffers)),
        type_(source_->dtype(source_->names().front())) {}

  std::vector<std::string> names() const override {
    auto result = source_->names();
    for (const auto& [name, values] : buffers_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override {
    return buffers_.contains(name) || source_->contains(name);
  }
  std::vector<int64_t> shape(const std::string& name) const override {
    const auto found = buffers_.find(name);
    return found == buffers_.end() ? source_->shape(name) : found->second.sizes().vec();
  }
  torch::ScalarType dtype(const std::string& name) const override {
    return buffers_.contains(name) ? type_ : source_->dtype(name);
  }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) return source_->read_into(to, name);
    torch::Tensor(to).copy_(found->second);
  }
  std::string place() const override { return source_->place(); }

 private:
  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, torch::Tensor> buffers_;
  torch::ScalarType type_;
};

/// The tensors of another source, some of them under other names.
class RenamedTensors final : public TensorSource {
 public:
  RenamedTensors(std::shared_ptr<const TensorSource> source, std::map<std::string, std::string> stored)
      : source_(std::move(source)), stored_(std::move(stored)) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, stored] : stored_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return stored_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return source_->shape(stored(name)); }
  torch::ScalarType dtype(const std::string& name) const override { return source_->dtype(stored(name)); }
  std::string place() const override { return source_->place(); }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    source_->read_into(to, stored(name));
  }

 private:
  const std::string& stored(const std::string& name) const {
    const auto found = stored_.find(name);
    return found == stored_.end() ? name : found->second;
  }

  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, std::string> stored_;  // present name → name in the source
};

/// The foreign tensors of a rule with the shapes that follow from ours.
std::vector<Part> their_parts(const TensorRule& rule, const TensorShapes& ours) {
  Shape shape = ours.at(rule.ours.front());
  shape.front() = 0;
  for (const auto& name : rule.ours) shape.front() += ours.at(name).front();
  if (rule.move == Move::reshaped) return {{rule.theirs.front(), rule.their_sizes}};
  std::vector<Part> parts;
  for (size_t i = 0; i < rule.theirs.size(); ++i) {
    Shape part = shape;
    if (rule.theirs.size() > 1) part.front() = rule.their_sizes.at(i);
    if (rule.move == Move::transposed && part.size() == 2) std::swap(part[0], part[1]);
    parts.push_back({rule.theirs[i], std::move(part)});
  }
  return parts;
}

std::vector<Part> our_parts(const TensorRule& rule, const TensorShapes& ours) {
  std::vector<Part> parts;
  for (const auto& name : rule.ours) parts.push_back({name, ours.at(name)});
  return parts;
}

/// The name without a beginning that it may have.
std::string without(const std::string& prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string text_of(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

[[noreturn]] void fail(const TensorSource& source, const std::string& problem) {
  throw CheckpointError(fmt::format("{}: {}", source.place(), problem));
}

/// Whether two tensors have equal bits.
bool are_equal(const TensorSource& source, const std::string& a, const std::string& b, Compared compared) {
  if (source.shape(a) != source.shape(b) || source.dtype(a) != source.dtype(b)) return false;
  return compared == Compared::shapes || source.tensor(a).equal(source.tensor(b));
}

/// Whether a tensor has these values, up to the precision of its type.
bool has_values(const TensorSource& source, const std::string& name, const torch::Tensor& values,
                Compared compared) {
  if (torch::IntArrayRef(source.shape(name)) != values.sizes()) return false;
  if (compared == Compared::shapes) return true;
  const auto type = source.dtype(name);
  const double precision = type == torch::kBFloat16 ? 1e-2 : type == torch::kHalf ? 1e-3 : 1e-5;
  return torch::allclose(source.tensor(name).to(torch::kFloat), values, /*rtol=*/0, precision);
}

}  // namespace

TensorRules& TensorRules::module(std::string ours, std::string theirs, Move move) {
  return modules({std::move(ours)}, {std::move(theirs)}, {}, move);
}

TensorRules& TensorRules::modules(std::vector<std::string> ours, std::vector<std::string> theirs,
                                  std::vector<int64_t> rows, Move move) {
  modules_.push_back({std::move(ours), std::move(theirs), move, std::move(rows)});
  return *this;
}

TensorRules& TensorRules::tensor(std::string ours, std::string theirs, Move move,
                                 std::vector<int64_t> shape) {
  tensors_.push_back({{std::move(ours)}, {std::move(theirs)}, move, std::move(shape)});
  return *this;
}

TensorRules& TensorRules::copy(std::string theirs, std::string original) {
  copies_.emplace_back(std::move(theirs), std::move(original));
  return *this;
}

TensorRules& TensorRules::tied(std::string theirs, std::string original) {
  tied_.emplace_back(theirs, original);
  return copy(std::move(theirs), std::move(original));
}

TensorRules& TensorRules::absent(std::string theirs, std::function<torch::Tensor()> values) {
  absent_.emplace_back(std::move(theirs), std::move(values));
  return *this;
}

TensorRules& TensorRules::renamed(std::string old, std::string present) {
  renamed_.emplace_back(std::move(old), std::move(present));
  return *this;
}

TensorRules& TensorRules::computed(std::string theirs, std::function<torch::Tensor()> values) {
  computed_.emplace_back(std::move(theirs), std::move(values));
  return *this;
}

TensorRules& TensorRules::buffer(std::string theirs, std::function<torch::Tensor()> values) {
  buffers_.emplace_back(theirs, values);
  return computed(std::move(theirs), std::move(values));
}

TensorRules& TensorRules::ignore(std::string pattern) {
  ignored_.push_back(std::move(pattern));
  return *this;
}

TensorRules& TensorRules::prefix(std::string prefix) {
  prefix_ = std::move(prefix);
  return *this;
}

TensorRules& TensorRules::layers(int64_t n_layers) {
  n_layers_ = n_layers;
  return *this;
}

TensorMapping::TensorMapping(const TensorRules& rules, TensorShapes ours)
    : copies_(rules.copies_),
      tied_(rules.tied_),
      renamed_(rules.renamed_),
      computed_(rules.computed_),
      buffers_(rules.buffers_),
      absent_(rules.absent_),
      ignored_(rules.ignored_),
      prefix_(rules.prefix_),
      ours_(std::move(ours)) {
  std::set<std::string> with_rule;
  const auto add = [&](const TensorRule& rule) {
    for (const auto& name : rule.ours) {
      if (!ours_.contains(name)) return;
    }
    for (const auto& name : rule.ours) {
      if (!with_rule.insert(name).second)
        throw Error(fmt::format("the tensor '{}' has two rules for its foreign name", name));
    }
    rules_.push_back(rule);
  };
  const auto for_layers = [&](const TensorRule& rule, const auto& use) {
    if (rule.ours.front().find("{}") == std::string::npos) return use(rule);
    for (int64_t layer = 0; layer < rules.n_layers_; ++layer) use(in_layer(rule, layer));
  };
  for (const auto& rule : rules.tensors_) for_layers(rule, add);
  for (const auto& rule : rules.modules_) {
    for_layers(rule, [&](const TensorRule& module) {
      // The tensors of the first module name those of all.
      const auto beginning = module.ours.front() + ".";
      for (auto at = ours_.lower_bound(beginning); at != ours_.end() && at->first.starts_with(beginning);
           ++at) {
        const auto last = at->first.substr(module.ours.front().size());
        if (last.find('.', 1) != last.npos) continue;  // of a module within it
        TensorRule rule_of_tensor = module;
        for (auto* names : {&rule_of_tensor.ours, &rule_of_tensor.theirs}) {
          for (auto& name : *names) name += last;
        }
        add(rule_of_tensor);
      }
    });
  }
  for (const auto& [name, shape] : ours_) {
    if (!with_rule.contains(name))
      throw Error(fmt::format("the tensor '{}' has no foreign name in this family", name));
  }
}

/// The beginning that the names of this file lack; empty if they have it, as those of a model with a head do.
std::string TensorMapping::missing_prefix(const TensorSource& foreign) const {
  const auto has_prefix = [&](const std::string& name) { return name.starts_with(prefix_); };
  return std::ranges::any_of(foreign.names(), has_prefix) ? std::string() : prefix_;
}

/// The checkpoint with the names that this version of the rules has.
std::shared_ptr<const TensorSource> TensorMapping::with_present_names(
    const std::shared_ptr<const TensorSource>& foreign) const {
  std::map<std::string, std::string> stored;
  bool is_renamed = false;
  for (const auto& name : foreign->names()) {
    auto present = name;
    for (const auto& [old, now] : renamed_) {
      if (const auto at = present.find(old); at != present.npos) present.replace(at, old.size(), now);
    }
    is_renamed = is_renamed || present != name;
    if (const auto [other, is_new] = stored.emplace(present, name); !is_new)
      fail(*foreign, fmt::format("'{}' and '{}' are two names of one tensor", other->second, excerpt(name)));
  }
  if (!is_renamed) return foreign;
  return std::make_shared<RenamedTensors>(foreign, std::move(stored));
}

bool TensorMapping::has_module(const std::shared_ptr<const TensorSource>& foreign,
                               const std::string& ours) const {
  const auto source = with_present_names(foreign);
  const auto prefix = missing_prefix(*source);
  return std::ranges::all_of(rules_, [&](const TensorRule& rule) {
    return !rule.ours.front().starts_with(ours + ".") ||
           std::ranges::all_of(rule.theirs, [&](const std::string& name) {
             return source->contains(without(prefix, name));
           });
  });
}

bool TensorMapping::has_own_output(const std::shared_ptr<const TensorSource>& foreign,
                                   Compared compared) const {
  const auto source = with_present_names(foreign);
  const auto prefix = missing_prefix(*source);
  return std::ranges::any_of(tied_, [&](const auto& pair) {
    const auto output = without(prefix, pair.first), embeddings = without(prefix, pair.second);
    return source->contains(output) && source->contains(embeddings) &&
           !are_equal(*source, output, embeddings, compared);
  });
}

std::shared_ptr<const TensorSource> TensorMapping::imported(
    const std::shared_ptr<const TensorSource>& stored, Compared compared) const {
  auto foreign = with_present_names(stored);
  const auto prefix = missing_prefix(*foreign);
  const auto name_in_file = [&](const std::string& name) { return without(prefix, name); };
  std::map<std::string, torch::Tensor> created;
  for (const auto& [name, values] : absent_) {
    if (!foreign->contains(name_in_file(name))) created.emplace(name_in_file(name), values());
  }
  if (!created.empty()) foreign = std::make_shared<WithBuffers>(foreign, std::move(created));
  std::set<std::string> used;
  std::vector<RowStack> stacks;
  for (const auto& rule : rules_) {
    RowStack stack{.from = their_parts(rule, ours_),
                   .to = our_parts(rule, ours_),
                   .move = rule.move,
                   .transposed = rule.move == Move::transposed ? RowStack::Transposed::from
                                                               : RowStack::Transposed::neither};
    for (auto& [name, shape] : stack.from) {
      // One of several equal tensors is enough.
      const auto copy = std::ranges::find_if(copies_, [&](const auto& pair) {
        return pair.second == name && foreign->contains(name_in_file(pair.first));
      });
      if (!foreign->contains(name_in_file(name)) && copy != copies_.end()) name = copy->first;
      name = name_in_file(name);
      if (!foreign->contains(name)) fail(*foreign, fmt::format("it has no tensor '{}'", name));
      if (const auto found = foreign->shape(name); found != shape) {
        fail(*foreign, fmt::format("its tensor '{}' is {}, but {} by its config.json", excerpt(name),
                                   text_of(found), text_of(shape)));
      }
      used.insert(name);
    }
    stacks.push_back(std::move(stack));
  }
  for (const auto& [copy, original] : copies_) {
    const auto second = name_in_file(copy), first = name_in_file(original);
    if (!foreign->contains(second) || !used.insert(second).second) continue;
    if (foreign->contains(first) && !are_equal(*foreign, second, first, compared)) {
      fail(*foreign,
           fmt::format("its tensor '{}' differs from '{}', but its config.json says that they are one",
                       second, first));
    }
  }
  for (const auto& [name, values] : computed_) {
    const auto in_file = name_in_file(name);
    if (!foreign->contains(in_file) || !used.insert(in_file).second) continue;
    if (!has_values(*foreign, in_file, values(), compared)) {
      fail(*foreign, fmt::format("its tensor '{}' has other values than its config.json gives", in_file));
    }
  }
  for (const auto& name : foreign->names()) {
    const bool is_known =
        used.contains(name) || std::ranges::any_of(ignored_, [&](const std::string& pattern) {
          return matches_pattern(pattern, prefix + name) || matches_pattern(pattern, name);
        });
    if (!is_known) fail(*foreign, fmt::format("its tensor '{}' is not in the model", excerpt(name)));
  }
  return std::make_shared<StackedTensors>(foreign, std::move(stacks));
}

std::shared_ptr<const TensorSource> TensorMapping::exported(const std::shared_ptr<const TensorSource>& ours,
                                                            ForeignNames names) const {
  std::vector<RowStack> stacks;
  const auto named = [&](const std::string& name) {
    return names == ForeignNames::without_prefix ? without(prefix_, name) : name;
  };
  for (auto rule : rules_) {
    for (auto& name : rule.theirs) name = named(name);
    stacks.push_back({.from = our_parts(rule, ours_),
                      .to = their_parts(rule, ours_),
                      .move = rule.move,
                      .transposed = rule.move == Move::transposed ? RowStack::Transposed::to
                                                                  : RowStack::Transposed::neither});
  }
  auto exported = std::make_shared<StackedTensors>(ours, std::move(stacks));
  if (buffers_.empty()) return exported;
  std::map<std::string, torch::Tensor> buffers;
  for (const auto& [name, values] : buffers_) buffers.emplace(named(name), values());
  return std::make_shared<WithBuffers>(std::move(exported), std::move(buffers));
}

}  // namespace zoo
