// zoo embed: texts and images as vectors.

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "analysis/embeddings.h"
#include "apps/console/commands.h"
#include "apps/console/input_files.h"
#include "apps/console/options.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/run_arguments.h"
#include "apps/console/texts.h"
#include "base/error.h"

namespace zoo {
namespace {

struct EmbedArguments {
  RunArguments run;
  TextArguments texts;
  std::vector<std::filesystem::path> images;
  std::vector<EmbeddingPooling> pooling;
  std::optional<std::string> prompt;
  bool normalize = false, json = false;
};

/// Writes each row with as few digits as give the same float again.
void write_rows(const torch::Tensor& vectors, std::string_view between_numbers,
                std::string_view between_rows) {
  const int64_t width = vectors.size(1);
  const float* row = vectors.const_data_ptr<float>();
  for (int64_t i = 0; i < vectors.size(0); ++i, row += width)
    std::cout << (i > 0 ? between_rows : "")
              << fmt::format("{}", fmt::join(row, row + width, between_numbers));
}

Embeddings embed_texts(const EmbedArguments& arguments, const Run& run) {
  auto options = embed_options(run, arguments.pooling, arguments.prompt);
  options.normalize = options.normalize || arguments.normalize;
  options.on_progress = progress_over("embedding", "texts");
  const auto& data = run.experiment().data;
  const auto texts = read_texts(arguments.texts, data);
  auto embeddings = embed(run.model(), run.tokenizer(), texts, options);
  options.on_progress = nullptr;  // ends the line of progress
  note_cut_texts(embeddings.n_cut, std::ssize(texts), data);
  return embeddings;
}

/// Embeds the texts that a person types, one by one.
void embed_typed_texts(const EmbedArguments& arguments, const Run& run) {
  auto options = embed_options(run, arguments.pooling, arguments.prompt);
  options.normalize = options.normalize || arguments.normalize;
  converse("Type a text to embed", kMostTypedBytes, [&](size_t, std::string text) {
    const auto lines = typed_text(std::move(text));
    const auto embeddings = embed(run.model(), run.tokenizer(), lines, options);
    note_cut_texts(embeddings.n_cut, std::ssize(lines), run.experiment().data);
    write_rows(embeddings.vectors, "\t", "\n");
    std::cout << std::endl;
  });
}

/// Whether the run reads both texts and images.
bool reads_both(const Run& run) {
  const auto& type = task_type(run.experiment());
  return type.predicts_from == PredictionInput::image_file && type.layout;
}

Embeddings embed_images(const EmbedArguments& arguments, const Run& run) {
  if (!arguments.pooling.empty()) throw UsageError("--pooling is for texts: leave it out");
  if (arguments.prompt) throw UsageError("--prompt is for texts: leave it out");
  EmbedOptions options;
  options.normalize = arguments.normalize;
  options.on_progress = progress_over("embedding", "images");
  // Where a run reads both, --input has texts.
  const auto& lists = reads_both(run) ? std::vector<std::filesystem::path>() : arguments.texts.files;
  return embed_images(run, input_files(FileKind::images, arguments.images, lists), options);
}

/// The vectors of the texts, then those of the images, of a run that reads both.
Embeddings embed_both(const EmbedArguments& arguments, const Run& run) {
  if (arguments.images.empty()) return embed_texts(arguments, run);
  if (!arguments.texts.names_texts()) return embed_images(arguments, run);
  return {.vectors = torch::cat({embed_texts(arguments, run).vectors, embed_images(arguments, run).vectors})};
}

void embed(const EmbedArguments& arguments) {
  const auto run = open_run(arguments.run);
  if (task_type(run.experiment()).predicts_from == PredictionInput::audio_file)
    throw UsageError(
        fmt::format("{}: reads recordings, of which there are no vectors: zoo predict writes them down",
                    arguments.run.dir.string()));
  const bool both = reads_both(run);
  if (!arguments.texts.texts.empty() && !both) require_input(run, PredictionInput::text, "--text");
  if (!arguments.images.empty()) require_input(run, PredictionInput::image_file, "--image");
  const bool reads_images = task_type(run.experiment()).predicts_from == PredictionInput::image_file;
  const bool wants_images = both ? !arguments.images.empty() : reads_images;
  if (!wants_images && !arguments.texts.names_texts() && !arguments.json && input_is_typed())
    return embed_typed_texts(arguments, run);
  const auto embeddings = both           ? embed_both(arguments, run)
                          : reads_images ? embed_images(arguments, run)
                                         : embed_texts(arguments, run);
  if (arguments.json) {
    std::cout << "{\"embeddings\":[[";
    write_rows(embeddings.vectors, ",", "],[");
    std::cout << fmt::format("]],\"weights\":\"{}\"}}\n", name_of(run.weight_format()));
  } else {
    write_rows(embeddings.vectors, "\t", "\n");
    std::cout << '\n';
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  const auto arguments = std::make_shared<EmbedArguments>();
  arguments->run.automatic = AutomaticWeights::by_precision;
  auto* command =
      app.add_subcommand("embed", "Turn texts or images into vectors: the hidden states of a trained model");
  add_run(*command, arguments->run.dir);
  add_texts(*command, arguments->texts);
  add_files(*command, FileKind::images, arguments->images);
  command
      ->add_option_function<std::vector<int64_t>>(
          "--pooling",
          [arguments](const std::vector<int64_t>& numbers) {
            for (const int64_t number : numbers)
              arguments->pooling.push_back(static_cast<EmbeddingPooling>(number));
          },
          "Which hidden states make the vector: mean (of all tokens), cls (the first token), last (the last "
          "token), max (of each dimension), weighted_mean (by place), mean_sqrt_len (the sum, divided by the "
          "root of the number of tokens) or pooler (of a classifier with an encoder); several, separated by "
          "commas, are put one after the other; default: the model's own, or else last for a decoder and "
          "mean for other models")
      ->transform(one_of<EmbeddingPooling>())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("POOLING");
  command
      ->add_option("--prompt", arguments->prompt,
                   "Name of a prompt of the model, which is put before each text, such as query; default: "
                   "the model's own default")
      ->option_text("NAME");
  command->add_flag("--normalize", arguments->normalize, "Scale each vector to a Euclidean norm of 1");
  add_json(*command, arguments->json, "One JSON document: {\"embeddings\": [[...]]}, a list for each input");
  add_base(*command, arguments->run.base);
  add_checkpoint(*command, arguments->run.checkpoint);
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line of numbers for each input, separated by tabs. Tokens include the special tokens that "
      "the model reads with a text, and never padding. The vectors of an encoder-decoder are the encoder's. "
      "A text without tokens is an error. Texts that are too long are cut as in training. The vector of an "
      "image is what a classifier's head reads: the class token, or the mean of the patches. A model of "
      "pictures and texts, such as CLIP, has vectors of both that can be compared: it prints those of the "
      "texts, then those of --image.");
  command->callback([arguments] { embed(*arguments); });
}

}  // namespace zoo
