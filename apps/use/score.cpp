// zoo score: how likely texts are to a trained model that writes.

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/run_arguments.h"
#include "base/error.h"
#include "data/tables.h"
#include "generation/prompt.h"
#include "generation/text_scores.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/json_document.h"
#include "text/corpus.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

struct ScoreArguments {
  RunArguments run;
  std::vector<std::string> texts;
  std::optional<std::filesystem::path> input;
  bool json = false;
};

/// A text, and what it answers if the model answers.
struct Line {
  std::optional<std::string> source;
  std::string text;
  TokensToScore tokens;
};

struct Score {
  double total = 0;
  std::optional<double> perplexity, bits_per_byte;  // nothing for a text without tokens
};

Score score_of(const Line& line, const std::vector<double>& logprobs) {
  Score score;
  for (const double logprob : logprobs) score.total += logprob;
  if (!logprobs.empty()) score.perplexity = std::exp(-score.total / static_cast<double>(logprobs.size()));
  if (!line.text.empty())
    score.bits_per_byte = -score.total / (std::log(2.0) * static_cast<double>(line.text.size()));
  return score;
}

class Scorer {
 public:
  explicit Scorer(const Run& run) : run_(run), writer_(run.model().generative()) {
    if (!writer_) {
      throw UsageError(
          fmt::format("{}: this run writes no texts, so it has no probabilities of texts: use a decoder or "
                      "an encoder-decoder",
                      run.dir().string()));
    }
  }

  bool answers() const { return !writer_->continues_prompt(); }
  const DataConfig& data() const { return run_.experiment().data; }
  size_t most_bytes() const { return 2 * most_prompt_bytes(writer_->max_length()); }

  Line read(std::string text) const {
    check_utf8(text);
    if (!answers()) {
      auto tokens = tokens_to_score(text, run_.tokenizer(), *writer_);
      return {.source = {}, .text = std::move(text), .tokens = std::move(tokens)};
    }
    const size_t tab = text.find('\t');
    if (tab == text.npos || text.find('\t', tab + 1) != text.npos)
      throw DataError("this model answers texts: write the source, one tab and the target");
    auto source = text.substr(0, tab), target = text.substr(tab + 1);
    auto tokens = tokens_to_score(source, target, run_.tokenizer(), *writer_);
    return {.source = std::move(source), .text = std::move(target), .tokens = std::move(tokens)};
  }

  std::vector<std::vector<double>> logprobs(const std::vector<Line>& lines) const {
    std::vector<TokensToScore> tokens;
    for (const auto& line : lines) tokens.push_back(line.tokens);
    return token_logprobs(run_.model(), tokens, run_.experiment().generation.batch_size);
  }

 private:
  const Run& run_;
  GenerativeModel* writer_;
};

std::string as_text(const Line& line, const std::vector<double>& logprobs) {
  const auto score = score_of(line, logprobs);
  const auto text = line.source ? *line.source + "\t" + line.text : line.text;
  return fmt::format("{:.4f}\t{}\t{}\t{}\n", score.total, logprobs.size(),
                     score.perplexity ? fmt::format("{:.4f}", *score.perplexity) : "-", text);
}

nlohmann::ordered_json as_json(const Line& line, const std::vector<double>& logprobs) {
  const auto score = score_of(line, logprobs);
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json result;
  if (line.source) result["source"] = *line.source;
  result["text"] = line.text;
  result["ids"] = line.tokens.ids;
  result["logprobs"] = logprobs;
  result["total"] = score.total;
  result["tokens"] = logprobs.size();
  result["perplexity"] = number(score.perplexity);
  result["bits_per_byte"] = number(score.bits_per_byte);
  return result;
}

/// The texts of --text, of --input or of standard input, and what messages call each of them.
std::vector<std::string> texts_of(const ScoreArguments& arguments, const Scorer& scorer) {
  const size_t most_bytes = scorer.most_bytes();
  if (!arguments.texts.empty()) return arguments.texts;
  if (!arguments.input) {
    auto lines = read_lines(std::cin, most_bytes);
    if (lines.empty())
      throw DataError("standard input is empty: write one text per line, or give --text TEXT");
    return lines;
  }
  if (is_table(*arguments.input) && !has_extension(*arguments.input, {".tsv", ".tab"})) {
    if (scorer.answers())
      throw DataError(
          fmt::format("{}: write lines with the source, one tab and the target, in a .tsv or a text",
                      arguments.input->string()));
    return zoo::read_texts(*arguments.input, scorer.data());
  }
  std::istringstream content(read_file(*arguments.input));
  auto lines = read_lines(content, most_bytes);
  if (lines.empty()) throw DataError(fmt::format("{}: the file is empty", arguments.input->string()));
  return lines;
}

std::vector<Line> read_texts(const ScoreArguments& arguments, const Scorer& scorer) {
  std::vector<Line> lines;
  for (auto& text : texts_of(arguments, scorer)) {
    try {
      lines.push_back(scorer.read(std::move(text)));
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", lines.size() + 1, error.what()));
    }
  }
  return lines;
}

void score(const ScoreArguments& arguments) {
  if (!arguments.texts.empty() && arguments.input)
    throw UsageError("--text and --input contradict each other: give one of them");
  const auto run = open_run(arguments.run);
  const Scorer scorer(run);
  if (arguments.texts.empty() && !arguments.input && !arguments.json && input_is_typed()) {
    const auto* const invitation =
        scorer.answers() ? "Type a source, a tab and its target" : "Type a text to score";
    return converse(invitation, scorer.most_bytes(), [&](size_t, std::string text) {
      const std::vector<Line> lines = {scorer.read(std::move(text))};
      std::cout << as_text(lines.front(), scorer.logprobs(lines).front()) << std::flush;
    });
  }
  const auto lines = read_texts(arguments, scorer);
  const auto logprobs = scorer.logprobs(lines);
  if (!arguments.json) {
    for (size_t i = 0; i < lines.size(); ++i) std::cout << as_text(lines[i], logprobs[i]);
    return;
  }
  auto results = nlohmann::ordered_json::array();
  for (size_t i = 0; i < lines.size(); ++i) results.push_back(as_json(lines[i], logprobs[i]));
  std::cout << json_text(nlohmann::ordered_json{{"results", std::move(results)},
                                                {"weights", name_of(run.weight_format())}})
            << '\n';
}

}  // namespace

void add_score(CLI::App& app) {
  const auto arguments = std::make_shared<ScoreArguments>();
  arguments->run.automatic = AutomaticWeights::by_precision;
  auto* command = app.add_subcommand(
      "score", "Say how likely texts are to a decoder, or answers to an encoder-decoder: log-probabilities");
  add_run(*command, arguments->run.dir);
  command->add_option("--text", arguments->texts, "A text; may be repeated")
      ->option_text("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--input", arguments->input,
          "A file with one text per line, or a table (.csv, .jsonl, .parquet) with a column of texts; "
          "default: standard input. For a model that answers, a line is a source, a tab and its target")
      ->type_name("FILE");
  add_json(
      *command, arguments->json,
      "One JSON document: {\"results\": [{text, ids, logprobs, total, tokens, perplexity, bits_per_byte}]}");
  add_base(*command, arguments->run.base);
  add_checkpoint(*command, arguments->run.checkpoint);
  add_weights(*command, arguments->run.weights);
  add_cache(*command, arguments->run.cache);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line for each text: the sum of the natural log-probabilities of its tokens, their number, "
      "the perplexity, and the text, separated by tabs. A decoder reads a text after the tokens that its "
      "vocabulary puts there; a target also has its end token. Texts that are longer than the model sees go "
      "on from their last half, as in generation.");
  command->callback([arguments] { score(*arguments); });
}

}  // namespace zoo
