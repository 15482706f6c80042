#include "checkpoints/import_run.h"

#include <memory>
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
          .n_parameters = n_elements(*foreign.tensors)};
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

}  // namespace

std::string export_run(const fs::path& run_dir, const fs::path& to, std::optional<ExportedType> type) {
  const auto write = [&](const Task& task, const std::shared_ptr<const TensorSource>& tensors) {
    return is_gguf_name(to) ? export_gguf(to, task, tensors, type)
                            : export_foreign(to, task, tensors, type, figures_of_run(run_dir));
  };
  const auto stored = open_stored_model(run_dir);
  if (!stored.task->experiment().training.lora) return write(*stored.task, stored.tensors);
  const auto run = Run::open(run_dir);
  merge_adapters_of(run);
  return write(run.task(), std::make_shared<TensorsOfModel>(run_dir.string(), named_tensors(run.model())));
}

}  // namespace zoo
