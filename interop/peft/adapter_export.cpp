#include "interop/peft/adapter_export.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "interop/peft/adapter_names.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// The adapter of a foreign matrix.
struct ForeignAdapter {
  torch::Tensor a, b;  // (r, I), (O, r)
  double scale = 1;
  bool is_transposed = false;
  std::vector<int64_t> shape;  // of the matrix

  int64_t rank() const { return a.size(0); }
  double alpha() const { return scale * static_cast<double>(rank()); }
};

/// "bert.pooler.dense" of "bert.pooler.dense.weight".
std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

bool is_within(const std::string& name, const std::string& module) { return name.starts_with(module + "."); }

bool is_within(const std::string& name, const std::set<std::string>& modules) {
  return std::ranges::any_of(modules, [&](const std::string& module) { return is_within(name, module); });
}

/// By the full names of the matrices.
std::map<std::string, ForeignAdapter> foreign_adapters(const std::vector<MatrixAdapter>& adapters,
                                                       const TensorMapping& mapping) {
  std::map<std::string, ForeignAdapter> result;
  for (const auto& own : adapters) {
    for (const auto& rows : mapping.foreign_rows(own.matrix, own.first_row, own.b.size(0))) {
      const bool is_transposed = rows.move == Move::transposed;
      const int64_t n_outputs = rows.shape.at(is_transposed ? 1 : 0);
      auto b = torch::zeros({n_outputs, own.b.size(1)}, own.b.options());
      b.narrow(0, rows.theirs, rows.count).copy_(own.b.narrow(0, rows.ours, rows.count));
      auto& there = result[rows.tensor];
      there.a = there.a.defined() ? torch::cat({there.a, own.a}, 0) : own.a.clone();
      there.b = there.b.defined() ? torch::cat({there.b, b}, 1) : b;
      there.scale = own.scale;  // a run has one for all
      there.is_transposed = is_transposed;
      there.shape = rows.shape;
    }
  }
  return result;
}

/// The modules, by full names, that the adapter brings whole.
std::set<std::string> saved_modules(const TrainedAdapter& trained, const TensorMapping& mapping,
                                    const std::vector<std::string>& names, const AdaptedClass& adapted) {
  std::set<std::string> modules;
  for (const auto& ours : trained.trained) {
    for (const auto& there : mapping.foreign_rows(ours, 0, trained.merged->shape(ours).front())) {
      if (there.tensor.find('.') == there.tensor.npos) {
        throw ConfigError(fmt::format(
            "'{}' was trained, which is in no module there: an adapter of PEFT cannot bring it; leave out "
            "--adapter",
            there.tensor));
      }
      modules.insert(module_of(there.tensor));
    }
  }
  // PEFT always saves these modules of a classifier.
  if (adapted.peft_task.ends_with("_CLS")) {
    for (const std::string head : {"classifier", "score"})
      if (std::ranges::any_of(names, [&](const auto& name) { return is_within(name, head); }))
        modules.insert(head);
  }
  const bool writes = adapted.peft_task.empty() || adapted.peft_task.ends_with("_LM");
  for (const auto& pair : mapping.copies()) {
    const auto& [copy, original] = pair;
    if (!is_within(original, modules) || is_within(copy, modules)) continue;
    if (std::ranges::find(mapping.tied(), pair) == mapping.tied().end()) {
      throw ConfigError(fmt::format(
          "'{}' was trained, which stands in several modules there: an adapter of PEFT cannot say "
          "this; leave out --adapter",
          original));
    }
    if (writes) modules.insert(module_of(copy));  // the embeddings are the output, too
  }
  std::erase_if(modules, [outer = modules](const std::string& module) { return is_within(module, outer); });
  return modules;
}

/// The part of a module's name after the number of its layer, or its whole name.
std::string name_in_layer(const std::string& module) {
  size_t begin = 0;
  for (size_t at = module.find('.'); at != module.npos; at = module.find('.', at + 1)) {
    const auto end = module.find('.', at + 1);
    const auto word = module.substr(at + 1, (end == module.npos ? module.size() : end) - at - 1);
    const bool is_number =
        !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number && end != module.npos) begin = end + 1;
  }
  return module.substr(begin);
}

/// Short names where they stand for the same modules.
std::vector<std::string> short_names(const std::set<std::string>& modules,
                                     const std::vector<std::string>& names) {
  std::set<std::string> result;
  for (const auto& module : modules) {
    const auto shorter = name_in_layer(module);
    const bool is_exact = std::ranges::all_of(names, [&](const std::string& name) {
      const auto other = module_of(name);
      return (other != shorter && !other.ends_with("." + shorter)) || modules.contains(other);
    });
    result.insert(is_exact ? shorter : module);
  }
  return {result.begin(), result.end()};
}

/// A whole number without a point.
Json number(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) < 1e-12 * std::abs(value) ? Json(static_cast<int64_t>(whole)) : Json(value);
}

Json ranks_of(const std::map<std::string, ForeignAdapter>& adapters) {
  std::map<int64_t, int64_t> counts;
  for (const auto& [module, adapter] : adapters) ++counts[adapter.rank()];
  const auto usual =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  const double scale = adapters.begin()->second.scale;
  Json config = {{"r", usual},
                 {"lora_alpha", number(scale * static_cast<double>(usual))},
                 {"rank_pattern", Json::object()},
                 {"alpha_pattern", Json::object()}};
  for (const auto& [module, adapter] : adapters) {
    if (adapter.rank() == usual) continue;
    config["rank_pattern"][module] = adapter.rank();
    config["alpha_pattern"][module] = number(adapter.alpha());
  }
  return config;
}

/// A and B as the layers of PEFT have them.
void add_tensors(const std::string& module, const ForeignAdapter& adapter, TensorMap& to) {
  auto a = adapter.a, b = adapter.b;
  if (adapter.shape.size() > 2) {  // a convolution
    auto a_shape = adapter.shape, b_shape = std::vector<int64_t>(adapter.shape.size(), 1);
    a_shape[0] = b_shape[1] = adapter.rank();
    b_shape[0] = adapter.shape[0];
    a = a.view(a_shape);
    b = b.view(b_shape);
  }
  const auto name = std::string(kAdapterPrefix) + module;
  to.emplace(name + ".lora_A.weight", a);
  to.emplace(name + ".lora_B.weight", b);
}

}  // namespace

AdapterFiles adapter_files(const TrainedAdapter& trained, const TensorMapping& mapping,
                           const AdaptedClass& adapted) {
  const torch::NoGradGuard no_grad;
  const auto whole = mapping.exported(trained.merged, ForeignNames::with_prefix);
  const auto names = whole->names();
  const auto saved = saved_modules(trained, mapping, names, adapted);
  const auto stored = [&](const std::string& full) {
    return mapping.stored_name(mapping.live_name(full), adapted.names);
  };

  AdapterFiles files;
  std::map<std::string, ForeignAdapter> adapters;
  std::set<std::string> targets;
  bool has_transposed = false;
  for (auto& [matrix, adapter] : foreign_adapters(trained.adapters, mapping)) {
    if (is_within(matrix, saved)) continue;
    has_transposed = has_transposed || adapter.is_transposed;
    const auto module = module_of(stored(matrix));
    targets.insert(module);
    add_tensors(module, adapter, files.tensors);
    adapters.emplace(module, std::move(adapter));
  }
  if (adapters.empty()) {
    throw ConfigError(
        "all its adapters are in modules that are stored whole, and PEFT knows no such adapter: leave out "
        "--adapter");
  }
  const auto add_whole = [&](const std::string& name, const std::string& source) {
    if (is_within(name, saved))
      files.tensors.emplace(std::string(kAdapterPrefix) + stored(name), whole->tensor(source));
  };
  for (const auto& name : names) add_whole(name, name);
  for (const auto& [copy, original] : mapping.copies()) add_whole(copy, original);

  auto& config = files.config = ranks_of(adapters);
  config.update({{"peft_type", "LORA"},
                 {"base_model_name_or_path", trained.base},
                 {"task_type", adapted.peft_task.empty() ? Json(nullptr) : Json(adapted.peft_task)},
                 {"auto_mapping", nullptr},
                 {"target_modules", Json::array()},
                 {"modules_to_save", nullptr},
                 {"lora_dropout", trained.dropout},
                 {"bias", "none"},
                 {"fan_in_fan_out", has_transposed},
                 {"inference_mode", true},
                 {"init_lora_weights", true},
                 {"use_rslora", false},
                 {"use_dora", false}});
  std::vector<std::string> stored_names;
  for (const auto& name : names) stored_names.push_back(stored(name));
  config["target_modules"] = short_names(targets, stored_names);
  for (const auto& module : saved) config["modules_to_save"].push_back(module_of(stored(module + ".weight")));
  if (adapted.peft_task.empty())
    config["auto_mapping"] = {{"base_model_class", adapted.name}, {"parent_library", "transformers"}};
  return files;
}

}  // namespace zoo
