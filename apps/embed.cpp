// zoo embed: texts as vectors.

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/embeddings.h"
#include "apps/arguments/options.h"
#include "apps/arguments/run_arguments.h"
#include "apps/arguments/texts.h"
#include "apps/commands.h"
#include "apps/console/prompt_lines.h"

namespace zoo {
namespace {

struct EmbedArguments {
  RunArguments run;
  TextArguments texts;
  std::optional<EmbeddingPooling> pooling;
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

void embed_texts(const EmbedArguments& arguments) {
  const auto run = open_run(arguments.run);
  auto options = embed_options(run, arguments.pooling);
  options.normalize = arguments.normalize;
  options.on_progress = progress_over("embedding", "texts");
  const auto& data = run.experiment().data;
  if (!arguments.texts.names_texts() && !arguments.json && input_is_typed()) {
    options.on_progress = nullptr;
    return converse("Type a text to embed", kMostTypedBytes, [&](size_t, std::string text) {
      const auto lines = typed_text(std::move(text));
      write_rows(embed(run.model(), run.tokenizer(), lines, options).vectors, "\t", "\n");
      std::cout << std::endl;
    });
  }
  const auto texts = read_texts(arguments.texts, data);
  const auto embeddings = embed(run.model(), run.tokenizer(), texts, options);
  options.on_progress = nullptr;  // ends the line of progress
  note_cut_texts(embeddings.n_cut, std::ssize(texts), data);
  if (arguments.json) {
    std::cout << "{\"embeddings\":[[";
    write_rows(embeddings.vectors, ",", "],[");
    std::cout << "]]}\n";
  } else {
    write_rows(embeddings.vectors, "\t", "\n");
    std::cout << '\n';
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  const auto arguments = std::make_shared<EmbedArguments>();
  auto* command =
      app.add_subcommand("embed", "Turn texts into vectors: the hidden states of a trained model");
  add_run(*command, arguments->run.dir);
  add_texts(*command, arguments->texts);
  command
      ->add_option(
          "--pooling", arguments->pooling,
          "Which hidden states make the vector: mean (of all tokens), cls (the first token), last (the "
          "last token) or pooler (of a classifier with an encoder); default: last for a decoder, "
          "otherwise mean")
      ->transform(one_of<EmbeddingPooling>())
      ->option_text("POOLING");
  command->add_flag("--normalize", arguments->normalize, "Scale each vector to a Euclidean norm of 1");
  add_json(*command, arguments->json, "One JSON document: {\"embeddings\": [[...]]}, a list for each text");
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line of numbers for each text, separated by tabs. Tokens include the special tokens that the "
      "model reads with a text, and never padding. The vectors of an encoder-decoder are the encoder's. A "
      "text without tokens is an error. Texts that are too long are cut as in training.");
  command->callback([arguments] { embed_texts(*arguments); });
}

}  // namespace zoo
