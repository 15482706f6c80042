#include "training/runs/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/files.h"

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
          {"rows_at_once", s.rows_at_once},
          {"finished", s.finished},
          {"data", s.data}};
}

TrainingState read_state(const fs::path& path) {
  try {
    const auto json = Json::parse(read_file(path, Follow::nothing));
    TrainingState s;
    json.at("step").get_to(s.step);
    json.at("epoch").get_to(s.next_batch.epoch);
    json.at("batch").get_to(s.next_batch.index);
    json.at("tokens").get_to(s.tokens);
    json.at("flops").get_to(s.flops);
    json.at("seconds").get_to(s.seconds);
    json.at("peak_memory_bytes").get_to(s.peak_memory_bytes);
    json.at("peak_resident_bytes").get_to(s.peak_resident_bytes);
    if (!json.at("best_score").is_null()) s.best_score = json.at("best_score").get<double>();
    json.at("best_step").get_to(s.best_step);
    json.at("loss_since_log").get_to(s.loss_since_log);
    s.loss_scale = {.value = json.value("loss_scale", 1.0),
                    .good_steps = json.value("loss_scale_good_steps", int64_t{0}),
                    .skipped = json.value("skipped_steps", int64_t{0})};
    json.at("steps_since_log").get_to(s.steps_since_log);
    json.at("sample_bytes").get_to(s.sample_bytes);
    s.rows_at_once = json.value("rows_at_once", int64_t{0});
    s.finished = json.value("finished", true);
    s.data = json.value("data", std::string());
    if (s.step < 0 || s.next_batch.epoch < 0 || s.next_batch.index < 0)
      throw std::runtime_error("a negative count");
    return s;
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  } catch (const std::exception& error) {
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), reason));
  }
}

/// The random generators that training uses: the CPU's, and the device's if it has its own.
std::vector<std::pair<std::string, at::Generator>> generators(torch::Device device) {
  std::vector<std::pair<std::string, at::Generator>> result;
  result.emplace_back("cpu", at::globalContext().defaultGenerator(torch::kCPU));
  if (device.is_cuda()) result.emplace_back("cuda", at::globalContext().defaultGenerator(device));
  return result;
}

TensorMap random_states(torch::Device device) {
  TensorMap states;
  for (const auto& [name, generator] : generators(device)) states.emplace(name, generator.get_state());
  return states;
}

void restore_random_states(const fs::path& path, torch::Device device) {
  const SafetensorsFile file(path);
  for (auto& [name, generator] : generators(device)) {
    // After a move to another device, the generator of that device starts from the seed.
    if (!file.contains(name)) continue;
    try {
      generator.set_state(file.tensor(name).clone());
    } catch (const c10::Error&) {
      throw CheckpointError(
          fmt::format("{}: damaged: no state of a random generator in '{}'", path.string(), name));
    }
  }
}

constexpr std::string_view kRemoved = ".removed-";

/// Renames the checkpoint first, so that it is never visible without some of its files. If the removal fails,
/// the renamed directory only takes up space until the next one.
void remove_checkpoint(const fs::path& path) {
  std::error_code ignored;
  for (fs::directory_iterator at(path.parent_path(), ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code another_time;
    if (at->path().filename().string().starts_with(kRemoved)) fs::remove_all(at->path(), another_time);
  }
  const fs::path hidden = path.parent_path() / fmt::format("{}{}", kRemoved, path.filename().string());
  fs::rename(path, hidden, ignored);
  if (!ignored) fs::remove_all(hidden, ignored);
}

}  // namespace

TensorMap named_tensors(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

void load_tensors(const fs::path& path, const TensorMap& tensors, Wanted wanted) {
  const SafetensorsFile file(path);
  const auto fail = [&](const std::string& problem) {
    throw CheckpointError(fmt::format("{}: of another architecture: {}", path.string(), problem));
  };
  for (const auto& [name, tensor] : tensors) {
    if (!file.contains(name)) fail(fmt::format("it has no tensor '{}'", name));
  }
  for (const auto& name : file.names()) {
    if (wanted == Wanted::all_tensors && !tensors.contains(name))
      fail(fmt::format("its tensor '{}' is not in the model", name));
  }
  for (const auto& [name, tensor] : tensors) {
    if (tensor.sizes() != file.shape(name)) {
      fail(fmt::format("its tensor '{}' is ({}), the model's is ({})", name,
                       fmt::join(file.shape(name), ", "), fmt::join(tensor.sizes(), ", ")));
    }
    if (file.dtype(name) != tensor.scalar_type()) {
      fail(fmt::format("its tensor '{}' is of type {}, the model's of type {}", name,
                       c10::toString(file.dtype(name)), c10::toString(tensor.scalar_type())));
    }
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) file.read_into(tensor, name);
}

void save_weights(const fs::path& path, const torch::nn::Module& module) {
  replace_file_atomically(
      path, [&](const fs::path& temporary) { save_safetensors(temporary, named_tensors(module)); });
}

void save_checkpoint(const fs::path& run_dir, const TrainedParts& parts, const TrainingState& state,
                     const KeptCheckpoints& kept) {
  const fs::path parent = run_dir / "checkpoints";
  make_subdirectory(parent);
  const fs::path name = fmt::format("step-{}", state.step);
  write_directory_atomically(parent / name, [&](const fs::path& dir) {
    save_safetensors(dir / "model.safetensors", named_tensors(parts.model));
    save_safetensors(dir / "optimizer.safetensors", parts.optimizer);
    if (parts.average) save_safetensors(dir / "average.safetensors", parts.average->state());
    save_safetensors(dir / "rng.safetensors", random_states(parts.device));
    write_file_atomically(dir / "state.json", to_json(state).dump(2) + "\n");
  });
  replace_symlink(name, parent / "last");
  int64_t others = kept.newest - 1;
  for (const auto& old : checkpoints_of(run_dir)) {
    if (old.filename() == name) continue;
    if (*step_of(old) % kept.every == 0 && others-- > 0) continue;
    remove_checkpoint(old);
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
  return read_state(checkpoint / "state.json");
}

TrainingState load_checkpoint(const fs::path& checkpoint, const TrainedParts& parts, Wanted optimizer) {
  auto state = read_training_state(checkpoint);
  load_tensors(checkpoint / "model.safetensors", named_tensors(parts.model));
  load_tensors(checkpoint / "optimizer.safetensors", parts.optimizer, optimizer);
  if (parts.average) load_tensors(checkpoint / "average.safetensors", parts.average->state());
  restore_random_states(checkpoint / "rng.safetensors", parts.device);
  return state;
}

}  // namespace zoo
