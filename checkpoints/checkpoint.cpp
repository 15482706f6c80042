#include "checkpoints/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/finite.h"
#include "io/files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json to_json(const TrainingState& s) {
  return {{"step", s.step},
          {"epoch", s.next_batch.epoch},
          {"batch", s.next_batch.index},
          {"tokens", s.tokens},
          {"flops", s.flops},
          {"seconds", s.seconds},
          {"peak_memory_bytes", s.peak_memory_bytes},
          {"peak_resident_bytes", s.peak_resident_bytes},
          {"best_score", s.best_score ? Json(*s.best_score) : Json()},
          {"best_step", s.best_step},
          {"loss_since_log", s.loss_since_log},
          {"loss_scale", s.loss_scale.value},
          {"loss_scale_good_steps", s.loss_scale.good_steps},
          {"skipped_steps", s.loss_scale.skipped},
          {"steps_since_log", s.steps_since_log},
          {"sample_bytes", s.sample_bytes},
          {"micro_batch_size", s.micro_batch_size},
          {"finished", s.finished},
          {"data", s.data}};
}

/// The members of a state.json. Each throws DataError for a value that no training writes.
class StateReader {
 public:
  explicit StateReader(const Json& json) : json_(json) {
    if (!json.is_object()) throw DataError("not a JSON object");
  }

  int64_t count(const char* key) const {
    constexpr double most = 9007199254740992.0;  // 2^53: far from an overflow, however much is added
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > most)
      throw DataError(fmt::format("{} is not a count", key));
    return value.get<int64_t>();
  }
  double number(const char* key) const {
    if (!at(key).is_number()) throw DataError(fmt::format("{} is not a number", key));
    return at(key).get<double>();
  }
  double number_from_zero(const char* key) const {
    if (number(key) < 0) throw DataError(fmt::format("{} is negative", key));
    return number(key);
  }
  bool flag(const char* key) const {
    if (!at(key).is_boolean()) throw DataError(fmt::format("{} is neither true nor false", key));
    return at(key).get<bool>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) throw DataError(fmt::format("{} is not a text", key));
    return at(key).get<std::string>();
  }
  bool has(const char* key) const { return json_.contains(key); }
  bool is_null(const char* key) const { return at(key).is_null(); }

 private:
  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) throw DataError(fmt::format("{} is missing", key));
    return *found;
  }
  const Json& json_;
};

LossScale read_loss_scale(const StateReader& from) {
  const LossScale scale{.value = from.number("loss_scale"),
                        .good_steps = from.count("loss_scale_good_steps"),
                        .skipped = from.count("skipped_steps")};
  if (!(scale.value > 0)) throw DataError("loss_scale is not positive");
  return scale;
}

TrainingState to_state(const Json& json) {
  const StateReader from(json);
  TrainingState s;
  s.step = from.count("step");
  s.next_batch = {.epoch = from.count("epoch"), .index = from.count("batch")};
  s.tokens = from.count("tokens");
  s.flops = from.number_from_zero("flops");
  s.seconds = from.number_from_zero("seconds");
  s.peak_memory_bytes = from.count("peak_memory_bytes");
  s.peak_resident_bytes = from.count("peak_resident_bytes");
  if (!from.is_null("best_score")) s.best_score = from.number("best_score");
  s.best_step = from.count("best_step");
  s.loss_since_log = from.number("loss_since_log");
  if (from.has("loss_scale")) s.loss_scale = read_loss_scale(from);
  s.steps_since_log = from.count("steps_since_log");
  s.sample_bytes = from.count("sample_bytes");
  if (from.has("micro_batch_size")) s.micro_batch_size = from.count("micro_batch_size");
  s.finished = from.has("finished") ? from.flag("finished") : true;
  if (from.has("data")) s.data = from.text("data");
  return s;
}

TrainingState read_state(const fs::path& path) {
  std::string text;
  try {
    text = read_json_text(path);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  try {
    return to_state(parse_json(text));
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), error.what()));
  }
}

constexpr std::string_view kRemoved = ".removed-";

/// Renames the checkpoint first, so that it is never visible without some of its files.
void remove_checkpoint(const fs::path& path) {
  const fs::path hidden = path.parent_path() / fmt::format("{}{}", kRemoved, path.filename().string());
  std::error_code ignored;
  fs::rename(path, hidden, ignored);
  if (!ignored) fs::remove_all(hidden, ignored);
}

}  // namespace

TensorMap named_weights(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

TensorMap named_tensors(const torch::nn::Module& module) {
  auto tensors = named_weights(module);
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

namespace {

enum class Types { equal, floating };

bool fits(torch::ScalarType stored, torch::ScalarType wanted, Types types) {
  if (stored == wanted) return true;
  return types == Types::floating && c10::isFloatingType(stored) && c10::isFloatingType(wanted);
}

/// The checks of load_tensors().
void check_tensors(const TensorSource& source, const TensorMap& tensors, Wanted wanted, Types types) {
  const auto fail = [&](const std::string& problem) {
    throw CheckpointError(fmt::format("{}: of another architecture: {}", source.place(), problem));
  };
  for (const auto& [name, tensor] : tensors) {
    if (!source.contains(name)) fail(fmt::format("it has no tensor '{}'", name));
  }
  for (const auto& name : source.names()) {
    if (wanted == Wanted::all_tensors && !tensors.contains(name))
      fail(fmt::format("its tensor '{}' is not in the model", name));
  }
  for (const auto& [name, tensor] : tensors) {
    if (const auto shape = source.shape(name); tensor.sizes() != shape) {
      fail(fmt::format("its tensor '{}' is ({}), the model's is ({})", name, fmt::join(shape, ", "),
                       fmt::join(tensor.sizes(), ", ")));
    }
    if (const auto stored = source.dtype(name); !fits(stored, tensor.scalar_type(), types)) {
      throw CheckpointError(
          fmt::format("{}: stored in another type: its tensor '{}' is {}, the model's is {}", source.place(),
                      name, c10::toString(stored), c10::toString(tensor.scalar_type())));
    }
  }
}

void load(const TensorSource& source, const TensorMap& tensors, Wanted wanted, Types types) {
  check_tensors(source, tensors, wanted, types);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) source.read_into(tensor, name);
}

/// The modules that own the matrices among the parameters, by the parameter's name.
std::map<std::string, MatrixModule*> owners_of_matrices(const torch::nn::Module& model) {
  std::map<std::string, MatrixModule*> owners;
  for (const auto& item : model.named_modules("", false)) {
    if (auto* const owner = dynamic_cast<MatrixModule*>(item.value().get()))
      owners.emplace(item.key() + ".weight", owner);
  }
  return owners;
}

}  // namespace

void load_tensors(const fs::path& path, const TensorMap& tensors, Wanted wanted) {
  load(SafetensorsFile(path), tensors, wanted, Types::equal);
}

void load_weights(const TensorSource& source, const torch::nn::Module& module) {
  load(source, named_tensors(module), Wanted::all_tensors, Types::floating);
  check_finite(source.place(), named_weights(module));
}

void load_weights(const fs::path& path, const torch::nn::Module& module) {
  load(SafetensorsFile(path), stored_tensors(module), Wanted::all_tensors, Types::floating);
  check_finite(path, named_weights(module));
}

void load_weights(const TensorSource& source, torch::nn::Module& module, WeightFormat format) {
  if (format == WeightFormat::fp32) return load_weights(source, module);
  auto tensors = named_tensors(module);
  check_tensors(source, tensors, Wanted::all_tensors, Types::floating);
  std::vector<std::pair<std::string, MatrixModule*>> owners;
  for (const auto& [name, owner] : owners_of_matrices(module)) {
    if (tensors.erase(name) == 0) continue;  // the same matrix under another name
    owners.emplace_back(name, owner);
    torch::Tensor(owner->matrix().parameter()).set_data(torch::empty({0}));  // frees its memory
  }
  // The largest first: what it leaves in memory has room for the others.
  std::ranges::stable_sort(owners, std::greater(),
                           [&](const auto& one) { return c10::multiply_integers(source.shape(one.first)); });
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) source.read_into(tensor, name);
  check_finite(source.place(), tensors);
  for (const auto& [name, owner] : owners) {
    TensorMap matrix{{name, torch::empty(source.shape(name))}};
    source.read_into(matrix.at(name), name);
    check_finite(source.place(), matrix);
    torch::Tensor(owner->matrix().parameter()).set_data(matrix.at(name));
    matrix.clear();  // now the module alone has it, and frees it
    owner->convert(format);
  }
}

void save_weights(const fs::path& path, const torch::nn::Module& module, const StringMap& metadata) {
  replace_file_atomically(path, [&](const fs::path& temporary) {
    save_safetensors(temporary, stored_tensors(module), metadata);
  });
}

std::optional<std::string> find_not_finite(const TrainedParts& parts) {
  if (auto name = find_not_finite(named_weights(parts.model))) return name;
  if (auto name = find_not_finite(parts.optimizer)) return name;
  return parts.average ? find_not_finite(*parts.average) : std::nullopt;
}

void write_training_state(const fs::path& checkpoint, const TrainingState& state) {
  write_file_atomically(checkpoint / "state.json", json_text(to_json(state), 2) + "\n");
}

void save_checkpoint(const fs::path& run_dir, const TrainedParts& parts, const TrainingState& state,
                     const KeptCheckpoints& kept) {
  const fs::path parent = run_dir / "checkpoints";
  make_subdirectory(parent);
  const fs::path name = fmt::format("step-{}", state.step);
  write_directory_atomically(parent / name, [&](const fs::path& dir) {
    save_safetensors(dir / weights_name(parts.model), stored_tensors(parts.model), belongs_to(parts.base));
    save_safetensors(dir / "optimizer.safetensors", parts.optimizer);
    if (parts.average) save_safetensors(dir / "average.safetensors", *parts.average);
    write_training_state(dir, state);
  });
  replace_symlink(name, parent / "last");
  int64_t others = kept.newest - 1;
  for (const auto& old : checkpoints_of(run_dir)) {
    if (old.filename() == name) continue;
    if (*step_of(old) % kept.every == 0 && others-- > 0) continue;
    remove_checkpoint(old);
  }
}

void finish_removals(const fs::path& run_dir) {
  if (!has_subdirectory(run_dir / "checkpoints")) return;
  std::error_code ignored, no_list;
  for (const auto& entry : fs::directory_iterator(run_dir / "checkpoints", no_list)) {
    if (entry.path().filename().string().starts_with(kRemoved)) fs::remove_all(entry.path(), ignored);
  }
}

std::vector<fs::path> checkpoints_of(const fs::path& run_dir) {
  std::vector<fs::path> found;
  if (!has_subdirectory(run_dir / "checkpoints")) return found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir / "checkpoints", error)) {
    if (step_of(entry.path()) && has_subdirectory(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return *step_of(a) > *step_of(b); });
  return found;
}

std::optional<int64_t> step_of(const fs::path& path) {
  const auto name = path.filename().string();
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + prefix.size(), end, step);
  return result.ec == std::errc() && result.ptr == end ? std::optional(step) : std::nullopt;
}

std::optional<fs::path> newest_checkpoint(const fs::path& run_dir) {
  const fs::path checkpoints = run_dir / "checkpoints";
  if (!has_subdirectory(checkpoints)) return std::nullopt;
  std::error_code error;
  const fs::path target = fs::read_symlink(checkpoints / "last", error);
  // Only the name counts: `last` may point at a directory of that name elsewhere.
  if (!error && step_of(target) && has_subdirectory(checkpoints / target.filename()))
    return checkpoints / target.filename();
  // The run may have been copied without its links.
  const auto all = checkpoints_of(run_dir);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

TrainingState read_training_state(const fs::path& checkpoint) {
  auto state = read_state(checkpoint / "state.json");
  if (const auto step = step_of(checkpoint); step && *step != state.step) {
    throw CheckpointError(
        fmt::format("{}: damaged: its state is that of step {}", checkpoint.string(), state.step));
  }
  return state;
}

TrainingState load_checkpoint(const fs::path& checkpoint, const TrainedParts& parts, Wanted optimizer) {
  auto state = read_training_state(checkpoint);
  const auto weights = checkpoint / weights_name(parts.model);
  if (!parts.base.empty()) check_belongs_to(weights, parts.base);
  load_weights(weights, parts.model);
  const auto load = [&](const char* name, const TensorMap& tensors, Wanted wanted) {
    load_tensors(checkpoint / name, tensors, wanted);
    check_finite(checkpoint / name, tensors);
  };
  load("optimizer.safetensors", parts.optimizer, optimizer);
  if (parts.average) load("average.safetensors", *parts.average, Wanted::all_tensors);
  return state;
}

}  // namespace zoo
