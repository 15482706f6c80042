#include "checkpoints/import_run.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/merge_run.h"
#include "checkpoints/run.h"
#include "checkpoints/run_figures.h"
#include "checkpoints/stored_model.h"
#include "interop/foreign_files.h"
#include "interop/foreign_model.h"
#include "interop/gguf_export.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "models/lora.h"
#include "models/trained_adapters.h"

namespace zoo {

namespace fs = std::filesystem;

ImportedRun import_run(const fs::path& dir, const fs::path& run_dir, const fs::path& base) {
  if (is_run(dir)) throw UsageError(fmt::format("{}: is a run already", dir.string()));
  if (!is_foreign(dir)) {
    throw UsageError(
        fmt::format("{}: neither a directory with a config.json, as in a download from Hugging Face, nor a "
                    "file of weights",
                    dir.string()));
  }
  if (is_there(run_dir))
    throw UsageError(fmt::format("{}: exists already; name a new directory", run_dir.string()));
  const auto foreign = open_foreign(dir, base);
  write_run(run_dir, foreign.task->experiment(), foreign.task->vocabulary(),
            [&](const fs::path& made) { copy_safetensors(made / "model.safetensors", *foreign.tensors); });
  return {.model_type = foreign.family->model_type,
          .task = foreign.task->experiment().task.type,
          .n_tensors = static_cast<int64_t>(foreign.tensors->names().size()),
          .n_parameters = n_elements(*foreign.tensors),
          .n_adapters = foreign.n_adapters};
}

namespace {

/// Tensors in memory.
class TensorsOfModel final : public TensorSource {
 public:
  TensorsOfModel(std::string place, TensorMap tensors)
      : place_(std::move(place)), tensors_(std::move(tensors)) {}
  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : tensors_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return tensors_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override {
    return tensors_.at(name).sizes().vec();
  }
  torch::ScalarType dtype(const std::string& name) const override { return tensors_.at(name).scalar_type(); }
  void read_into(const torch::Tensor& to, const std::string& name) const override {
    torch::Tensor(to).copy_(tensors_.at(name));
  }
  std::string place() const override { return place_; }

 private:
  std::string place_;
  TensorMap tensors_;
};

/// The tensors of an opened run, with its adapters merged into them.
std::shared_ptr<const TensorSource> merged_tensors(const Run& run) {
  merge_adapters_of(run);
  return std::make_shared<TensorsOfModel>(run.dir().string(), named_tensors(run.model()));
}

std::string export_adapter_of(const fs::path& run_dir, const fs::path& to, const ExportOptions& options) {
  const auto fail = [&](std::string_view problem) {
    throw UsageError(fmt::format("--adapter: {}: {}", run_dir.string(), problem));
  };
  if (is_foreign(run_dir)) fail("is no run, so it has no adapters that were trained here");
  if (!options.base.empty()) fail("is no adapter of PEFT, so it has no --base");
  const auto experiment = read_stored_experiment(run_dir);
  if (!experiment.training.lora) fail("was trained without training.lora, so it has no adapters");
  if (!experiment.init_from) fail("has no init_from, so there is no base that its adapters change");
  if (is_gguf_name(to)) fail("adapters are written to a directory: give a name without .gguf");
  const auto run = Run::open(run_dir);
  TrainedAdapter trained;
  trained.base = experiment.init_from->text;
  trained.dropout = experiment.training.lora->dropout;
  trained.adapters = adapters_of(run.model(), *experiment.training.lora);
  for (const auto& item : run.model().named_parameters()) {
    if (item.value().requires_grad() && !is_adapter_parameter(item.key()))
      trained.trained.push_back(item.key());
  }
  trained.merged = merged_tensors(run);
  return export_adapter(to, run.task(), trained, options.type);
}

}  // namespace

std::string export_run(const fs::path& run_dir, const fs::path& to, const ExportOptions& options) {
  if (options.part == ExportedPart::adapter) return export_adapter_of(run_dir, to, options);
  const auto write = [&](const Task& task, const std::shared_ptr<const TensorSource>& tensors) {
    return is_gguf_name(to) ? export_gguf(to, task, tensors, options.type)
                            : export_foreign(to, task, tensors, options.type, figures_of_run(run_dir));
  };
  const auto stored = open_stored_model(run_dir, options.base);
  if (!stored.task->experiment().training.lora) return write(*stored.task, stored.tensors);
  const auto run = Run::open(run_dir);
  return write(run.task(), merged_tensors(run));
}

}  // namespace zoo
