#include "interop/families/tensor_rules.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/families/moved_tensors.h"

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

/// The foreign tensors of a rule with the shapes that follow from ours.
std::vector<TensorPart> their_parts(const TensorRule& rule, const TensorShapes& ours) {
  Shape shape = ours.at(rule.ours.front());
  shape.front() = 0;
  for (const auto& name : rule.ours) shape.front() += ours.at(name).front();
  if (rule.move == Move::reshaped) return {{rule.theirs.front(), rule.their_sizes}};
  if (const int64_t n = rule.groups.n_matrices; n > 0) {
    Shape stacked{n};
    stacked.insert(stacked.end(), shape.begin() + 1, shape.end());
    stacked.push_back(shape.front() / n);
    return {{rule.theirs.front(), std::move(stacked)}};
  }
  std::vector<TensorPart> parts;
  for (size_t i = 0; i < rule.theirs.size(); ++i) {
    Shape part = shape;
    if (rule.theirs.size() > 1) part.front() = rule.their_sizes.at(i);
    if (rule.move == Move::transposed && part.size() == 2) std::swap(part[0], part[1]);
    parts.push_back({rule.theirs[i], std::move(part)});
  }
  return parts;
}

std::vector<TensorPart> our_parts(const TensorRule& rule, const TensorShapes& ours) {
  std::vector<TensorPart> parts;
  for (const auto& name : rule.ours) parts.push_back({name, ours.at(name)});
  return parts;
}

/// Where rows `first` … `first` + `count` - 1 of a stack are among grouped rows.
std::vector<ForeignRows> grouped_rows(const TensorRule& rule, const TensorShapes& ours, int64_t first,
                                      int64_t count) {
  const auto part = their_parts(rule, ours).front();
  const auto& [n_groups, sections, n_matrices] = rule.groups;
  if (n_matrices > 0)
    throw UsageError(fmt::format(
        "'{}' is a stack of matrices, for which adapters of PEFT have no form: adapt other maps", part.name));
  const int64_t group = part.shape.front() / n_groups;  // rows of a group there
  std::vector<ForeignRows> result;
  int64_t section_begin = 0, place = 0;  // of the section: its first row here, and its first row in a group
  for (const int64_t section : sections) {
    const int64_t width = section / n_groups;
    for (int64_t g = 0; g < n_groups; ++g) {
      const int64_t begin = section_begin + g * width;
      const int64_t low = std::max(begin, first), high = std::min(begin + width, first + count);
      if (low >= high) continue;
      result.push_back({.tensor = part.name,
                        .shape = part.shape,
                        .move = rule.move,
                        .ours = low - first,
                        .theirs = g * group + place + low - begin,
                        .count = high - low});
    }
    section_begin += section;
    place += width;
  }
  return result;
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
  return torch::allclose(source.tensor(name).to(torch::kFloat), values.to(torch::kFloat), /*rtol=*/0,
                         precision);
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

TensorRules& TensorRules::grouped(std::vector<std::string> ours, std::string theirs, RowGroups groups) {
  modules_.push_back({.ours = std::move(ours),
                      .theirs = {std::move(theirs)},
                      .move = Move::grouped,
                      .groups = std::move(groups)});
  return *this;
}

TensorRules& TensorRules::stacked(const std::vector<std::string>& ours, const std::string& theirs,
                                  RowGroups groups) {
  for (const std::string last : {"weight", "bias"}) {
    TensorRule rule;
    rule.theirs = {last == "bias" ? theirs + "_bias" : theirs};
    rule.move = Move::grouped;
    rule.groups = groups;
    for (const auto& name : ours) rule.ours.push_back(name + "." + last);
    tensors_.push_back(std::move(rule));
  }
  return *this;
}

TensorRules& TensorRules::tensor(std::string ours, std::string theirs, Move move,
                                 std::vector<int64_t> shape) {
  tensors_.push_back({{std::move(ours)}, {std::move(theirs)}, move, std::move(shape)});
  return *this;
}

TensorRules& TensorRules::rows(std::vector<std::string> ours, std::string theirs) {
  tensors_.push_back({.ours = std::move(ours), .theirs = {std::move(theirs)}});
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

TensorRules& TensorRules::live(std::string stored, std::string live) {
  live_.emplace_back(stored, live);
  return renamed(std::move(live), std::move(stored));
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
    : given_(rules), ours_(std::move(ours)) {
  std::set<std::string> with_rule;
  const auto add = [&](const TensorRule& rule) {
    for (const auto& name : rule.ours) {
      if (!ours_.contains(name)) return;
    }
    for (const auto& name : rule.ours) {
      if (!with_rule.insert(name).second)
        throw Error(fmt::format("the tensor '{}' has two rules for its foreign name", name));
    }
    for (const auto& name : rule.theirs) theirs_.emplace(name, rules_.size());
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
    if (name.ends_with(".experts.last_share")) continue;  // training alone needs it
    if (!with_rule.contains(name))
      throw Error(fmt::format("the tensor '{}' has no foreign name in this family", name));
  }
}

/// The beginning that the names of this file lack; empty if they have it, as those of a model with a head do.
std::string TensorMapping::missing_prefix(const TensorSource& foreign) const {
  const auto has_prefix = [&](const std::string& name) { return name.starts_with(given_.prefix_); };
  return std::ranges::any_of(foreign.names(), has_prefix) ? std::string() : given_.prefix_;
}

std::string TensorMapping::present_name(std::string foreign) const {
  for (const auto& [old, now] : given_.renamed_) {
    if (const auto at = foreign.find(old); at != foreign.npos) foreign.replace(at, old.size(), now);
  }
  return foreign;
}

std::string TensorMapping::full_name(const std::string& foreign) const {
  auto present = present_name(foreign);
  const auto is_known = [&](const std::string& name) {
    const auto is_it = [&](const auto& pair) { return pair.first == name; };
    const auto fits = [&](const std::string& pattern) { return matches_pattern(pattern, name); };
    return theirs_.contains(name) || std::ranges::any_of(given_.copies_, is_it) ||
           std::ranges::any_of(given_.computed_, [&](const auto& pair) { return fits(pair.first); }) ||
           std::ranges::any_of(given_.ignored_, fits);
  };
  return !is_known(present) && is_known(given_.prefix_ + present) ? given_.prefix_ + present : present;
}

std::string TensorMapping::live_name(std::string full) const {
  for (const auto& [stored, live] : given_.live_) {
    if (const auto at = full.find(stored); at != full.npos) full.replace(at, stored.size(), live);
  }
  return full;
}

std::string TensorMapping::stored_name(const std::string& full, ForeignNames names) const {
  return names == ForeignNames::without_prefix ? without(given_.prefix_, full) : full;
}

/// The checkpoint under the names that `name_of` gives.
std::shared_ptr<const TensorSource> TensorMapping::renamed(
    const std::shared_ptr<const TensorSource>& foreign,
    const std::function<std::string(const std::string& name)>& name_of) const {
  std::map<std::string, std::string> stored;
  bool is_renamed = false;
  for (const auto& name : foreign->names()) {
    const auto other = name_of(name);
    is_renamed = is_renamed || other != name;
    if (const auto [first, is_new] = stored.emplace(other, name); !is_new)
      fail(*foreign, fmt::format("'{}' and '{}' are two names of one tensor", first->second, excerpt(name)));
  }
  return is_renamed ? renamed_tensors(foreign, std::move(stored)) : foreign;
}

/// The checkpoint with the names that this version of the rules has.
std::shared_ptr<const TensorSource> TensorMapping::with_present_names(
    const std::shared_ptr<const TensorSource>& foreign) const {
  return renamed(foreign, [&](const std::string& name) { return present_name(name); });
}

std::shared_ptr<const TensorSource> TensorMapping::with_full_names(
    const std::shared_ptr<const TensorSource>& foreign) const {
  return renamed(foreign, [&](const std::string& name) { return full_name(name); });
}

bool TensorMapping::is_transposed(const std::string& full) const {
  const auto found = theirs_.find(full);
  return found != theirs_.end() && rules_[found->second].move == Move::transposed;
}

std::vector<ForeignRows> TensorMapping::foreign_rows(const std::string& ours, int64_t first,
                                                     int64_t count) const {
  for (const auto& rule : rules_) {
    const auto here = our_parts(rule, ours_);
    const auto found = std::ranges::find(here, ours, &TensorPart::name);
    if (found == here.end()) continue;
    int64_t begin = first;
    for (auto part = here.begin(); part != found; ++part) begin += n_rows(*part, false);
    if (rule.move == Move::grouped) return grouped_rows(rule, ours_, begin, count);
    std::vector<ForeignRows> result;
    int64_t part_begin = 0;
    for (auto& part : their_parts(rule, ours_)) {
      const int64_t part_end = part_begin + n_rows(part, rule.move == Move::transposed);
      const int64_t low = std::max(begin, part_begin), high = std::min(begin + count, part_end);
      if (low < high) {
        result.push_back({.tensor = std::move(part.name),
                          .shape = std::move(part.shape),
                          .move = rule.move,
                          .ours = low - begin,
                          .theirs = low - part_begin,
                          .count = high - low});
      }
      part_begin = part_end;
    }
    return result;
  }
  throw Error(fmt::format("the tensor '{}' has no foreign name in this family", ours));
}

bool TensorMapping::has_module(const std::shared_ptr<const TensorSource>& foreign,
                               const std::string& ours) const {
  const auto source = with_present_names(foreign);
  const auto prefix = missing_prefix(*source);
  return std::ranges::all_of(rules_, [&](const TensorRule& rule) {
    return !rule.ours.front().starts_with(ours + ".") ||
           std::ranges::all_of(
               rule.theirs, [&](const std::string& name) { return source->contains(without(prefix, name)); });
  });
}

bool TensorMapping::has_own_output(const std::shared_ptr<const TensorSource>& foreign,
                                   Compared compared) const {
  const auto source = with_present_names(foreign);
  const auto prefix = missing_prefix(*source);
  return std::ranges::any_of(given_.tied_, [&](const auto& pair) {
    const auto output = without(prefix, pair.first), embeddings = without(prefix, pair.second);
    return source->contains(output) && source->contains(embeddings) &&
           !are_equal(*source, output, embeddings, compared);
  });
}

std::shared_ptr<const TensorSource> TensorMapping::imported(const std::shared_ptr<const TensorSource>& stored,
                                                            Compared compared) const {
  auto foreign = with_present_names(stored);
  const auto prefix = missing_prefix(*foreign);
  const auto name_in_file = [&](const std::string& name) { return without(prefix, name); };
  std::map<std::string, torch::Tensor> created;
  for (const auto& [name, values] : given_.absent_) {
    if (!foreign->contains(name_in_file(name))) created.emplace(name_in_file(name), values());
  }
  if (!created.empty()) foreign = with_buffers(foreign, std::move(created));
  std::set<std::string> used;
  std::vector<RowStack> stacks;
  for (const auto& rule : rules_) {
    RowStack stack{.from = their_parts(rule, ours_),
                   .to = our_parts(rule, ours_),
                   .move = rule.move,
                   .groups = rule.groups,
                   .grouped = RowStack::Side::from,
                   .transposed = rule.move == Move::transposed ? RowStack::Transposed::from
                                                               : RowStack::Transposed::neither};
    for (auto& [name, shape] : stack.from) {
      // One of several equal tensors is enough.
      const auto copy = std::ranges::find_if(given_.copies_, [&](const auto& pair) {
        return pair.second == name && foreign->contains(name_in_file(pair.first));
      });
      if (!foreign->contains(name_in_file(name)) && copy != given_.copies_.end()) name = copy->first;
      name = name_in_file(name);
      if (!foreign->contains(name)) {
        fail(*foreign, fmt::format("it has no tensor '{}': the architectures of config.json name another "
                                   "class than it has, or a part is missing",
                                   name));
      }
      if (const auto found = foreign->shape(name); found != shape) {
        fail(*foreign, fmt::format("its tensor '{}' is {}, but {} by its config.json", excerpt(name),
                                   text_of(found), text_of(shape)));
      }
      used.insert(name);
    }
    stacks.push_back(std::move(stack));
  }
  for (const auto& [copy, original] : given_.copies_) {
    const auto second = name_in_file(copy), first = name_in_file(original);
    if (!foreign->contains(second) || !used.insert(second).second) continue;
    if (foreign->contains(first) && !are_equal(*foreign, second, first, compared)) {
      fail(*foreign,
           fmt::format("its tensor '{}' differs from '{}', but its config.json says that they are one",
                       second, first));
    }
  }
  for (const auto& [name, values] : given_.computed_) {
    const auto in_file = name_in_file(name);
    if (!foreign->contains(in_file) || !used.insert(in_file).second) continue;
    if (!has_values(*foreign, in_file, values(), compared)) {
      fail(*foreign, fmt::format("its tensor '{}' has other values than its config.json gives", in_file));
    }
  }
  for (const auto& name : foreign->names()) {
    const bool is_known =
        used.contains(name) || std::ranges::any_of(given_.ignored_, [&](const std::string& pattern) {
          return matches_pattern(pattern, prefix + name) || matches_pattern(pattern, name);
        });
    if (!is_known) {
      fail(*foreign, fmt::format("its tensor '{}' is not in the model: the architectures of config.json name "
                                 "another class than it has, or it was added",
                                 excerpt(name)));
    }
  }
  return stacked_tensors(foreign, std::move(stacks));
}

std::shared_ptr<const TensorSource> TensorMapping::exported(const std::shared_ptr<const TensorSource>& ours,
                                                            ForeignNames names) const {
  std::vector<RowStack> stacks;
  const auto named = [&](const std::string& name) { return stored_name(name, names); };
  for (auto rule : rules_) {
    for (auto& name : rule.theirs) name = named(name);
    stacks.push_back({.from = our_parts(rule, ours_),
                      .to = their_parts(rule, ours_),
                      .move = rule.move,
                      .groups = rule.groups,
                      .grouped = RowStack::Side::to,
                      .transposed = rule.move == Move::transposed ? RowStack::Transposed::to
                                                                  : RowStack::Transposed::neither});
  }
  auto exported = stacked_tensors(ours, std::move(stacks));
  if (given_.buffers_.empty()) return exported;
  std::map<std::string, torch::Tensor> buffers;
  for (const auto& [name, values] : given_.buffers_) buffers.emplace(named(name), values());
  return with_buffers(std::move(exported), std::move(buffers));
}

}  // namespace zoo
