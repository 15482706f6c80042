#include "analysis/image_attention.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/images/image_file.h"
#include "io/json_document.h"
#include "models/families/families.h"
#include "tasks/task.h"

namespace zoo {
namespace {

/// The names of the decoder's rows. The objects stand with the best score first, so each query gets its best.
std::vector<std::string> query_names(int64_t n_queries, const Prediction& prediction) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < n_queries; ++i) names.push_back(fmt::format("query {}", i));
  const auto* const answer = std::get_if<PredictedObjects>(&prediction.answer);
  if (!answer) return names;
  std::vector<bool> named(names.size());
  for (const auto& [label, score, box, query] : answer->objects) {
    if (!query || *query < 0 || *query >= n_queries || named[static_cast<size_t>(*query)]) continue;
    named[static_cast<size_t>(*query)] = true;
    names[static_cast<size_t>(*query)] += fmt::format(": {} {:.2f}", label, score);
  }
  return names;
}

/// What a grid covers of the picture: `shown` are height × width pixels of the batch's image. It goes past
/// the picture where the image is padded.
Box covered(const PatchGrid& grid, int64_t height, int64_t width, const Box& shown) {
  const auto share = [&](int64_t places, int64_t side) {
    return static_cast<double>(places * grid.patch_size) / static_cast<double>(side);
  };
  return {.x = shown.x,
          .y = shown.y,
          .width = shown.width * share(grid.columns, width),
          .height = shown.height * share(grid.rows, height)};
}

/// Height and width of the first image of a batch, without its padding.
std::pair<int64_t, int64_t> size_within(const Batch& batch) {
  const auto& images = batch.field(fields::kImages);
  if (!batch.fields.contains(fields::kImageSizes)) return {images.size(2), images.size(3)};
  const auto& sizes = batch.field(fields::kImageSizes);
  return {sizes[0][0].item<int64_t>(), sizes[0][1].item<int64_t>()};
}

int64_t n_queries(const std::vector<AttentionLayer>& layers) {
  for (const auto& layer : layers)
    if (layer.kind == AttentionKind::cross) return layer.weights.size(1);
  return 0;
}

}  // namespace

std::vector<std::string> place_names(const PatchGrid& grid) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < grid.n_before; ++i)
    names.push_back(grid.n_before == 1 ? "class" : fmt::format("special {}", i));
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column)
      names.push_back(fmt::format("row {} column {}", row, column));
  return names;
}

AttentionReport image_attention_report(Model& model, Task& task, const std::string& image) {
  const auto inputs = task.read_inputs({image});
  const auto grid = model.patch_grid(inputs.batch);
  if (!grid)
    throw UsageError(fmt::format("a model of the family {} has no places of a picture: choose another run",
                                 task.experiment().model.architecture.type));
  const auto [height, width] = size_within(inputs.batch);
  AttentionReport report;
  report.layers = attention_layers(model, model.on_device(inputs.batch));
  report.image = AttendedImage{.file = image,
                               .picture = read_image(image, Follow::everything, 3),
                               .grid = *grid,
                               .part = covered(*grid, height, width, inputs.shown.front()),
                               .prediction = task.predict(model, {image}).front()};
  report.source_tokens = place_names(*grid);
  report.target_tokens = query_names(n_queries(report.layers), report.image->prediction);
  return report;
}

AttentionReport image_attention_report(const Run& run, const std::string& image) {
  const auto& experiment = run.experiment();
  const auto& type = task_type(experiment);
  if (type.predicts_from != PredictionInput::image_file)
    throw UsageError(fmt::format("the task {} reads no images: give a text", type.name));
  if (const auto problem = why_no_maps(experiment.model)) throw UsageError(*problem + ": choose another run");
  auto report = image_attention_report(run.model(), run.task(), image);
  report.name = experiment.name;
  return report;
}

nlohmann::ordered_json image_json(const AttentionReport& report) {
  const auto& [file, picture, grid, part, prediction] = report.image.value();
  const auto predicted = parse_ordered_json(to_json({prediction}))["results"][0];
  nlohmann::ordered_json document{{"name", report.name},
                                  {"image", file},
                                  {"width", picture.shape.width},
                                  {"height", picture.shape.height},
                                  {"rows", grid.rows},
                                  {"columns", grid.columns},
                                  {"special", grid.n_before},
                                  {"part", {part.x, part.y, part.width, part.height}},
                                  {"source_tokens", report.source_tokens},
                                  {"target_tokens", report.target_tokens}};
  const auto* const answer = std::get_if<PredictedObjects>(&prediction.answer);
  if (!answer) {
    for (const char* const key : {"labels", "score"}) {
      if (predicted.contains(key)) document[key] = predicted[key];
    }
    return document;
  }
  document["objects"] = predicted["objects"];
  for (size_t i = 0; i < answer->objects.size(); ++i) {
    const auto& query = answer->objects[i].query;
    document["objects"][i]["query"] = query ? nlohmann::ordered_json(*query) : nullptr;
  }
  return document;
}

}  // namespace zoo
