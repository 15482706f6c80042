// zoo generate: text from a trained model. A decoder continues each prompt, an encoder-decoder answers it, a
// masked language model fills its masks.

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/options.h"
#include "apps/arguments/token_ids.h"
#include "apps/commands.h"
#include "base/device.h"
#include "base/error.h"
#include "base/text.h"
#include "generation/fill_mask.h"
#include "generation/generator.h"
#include "io/files.h"
#include "training/runs/run.h"

namespace zoo {
namespace {

struct GenerateArguments {
  std::filesystem::path run;
  std::optional<std::string> prompt, prompt_ids;
  std::optional<std::filesystem::path> input;
  std::optional<int64_t> max_new_tokens, beam, top_k, seed, num_samples;
  std::optional<double> temperature, top_p;
  std::optional<WeightFormat> weights;
  bool stream = false, json = false;
  std::string device = "auto";
};

struct Prompt {
  std::string text;
  TokenIds ids;
};

// Default number of candidates for each mask.
constexpr int64_t kMaskCandidates = 5;

TokenIds prompt_ids(std::string_view text) {
  TokenIds ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    auto word = text.substr(begin, end - begin);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    ids.push_back(parse_token_id(word, "--prompt-ids: "));
    begin = end + 1;
  }
  return ids;
}

std::vector<std::string> lines_of(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.emplace_back(lines.empty() ? without_byte_order_mark(line) : line);
  }
  return lines;
}

[[noreturn]] void fail_without_prompts() {
  throw DataError("standard input is empty: write one prompt per line, or give --prompt TEXT");
}

/// No texts if standard input is empty.
std::vector<std::string> prompt_texts(const GenerateArguments& arguments) {
  if (arguments.prompt) return {*arguments.prompt};
  if (!arguments.input) return lines_of(std::cin);
  std::istringstream content(read_file(*arguments.input));
  auto lines = lines_of(content);
  if (lines.empty()) throw DataError(fmt::format("{}: the file is empty", arguments.input->string()));
  return lines;
}

std::vector<Prompt> read_prompts(const GenerateArguments& arguments, const Tokenizer& tokenizer,
                                 bool has_masks) {
  if (arguments.prompt_ids) {
    const auto ids = prompt_ids(*arguments.prompt_ids);
    return {{.text = tokenizer.decode(ids), .ids = ids}};
  }
  std::vector<Prompt> prompts;
  for (auto& text : prompt_texts(arguments)) {
    try {
      if (const auto at = find_invalid_utf8(text)) {
        throw DataError(fmt::format("text is not UTF-8 at byte {}: {}", *at,
                                    excerpt(std::string_view(text).substr(*at), 16)));
      }
      auto ids = has_masks ? encode_masked(tokenizer, text) : tokenizer.encode(text);
      prompts.push_back({.text = std::move(text), .ids = std::move(ids)});
    } catch (const DataError& error) {
      throw DataError(fmt::format("prompt {}: {}", prompts.size() + 1, error.what()));
    }
  }
  return prompts;
}

/// The run's `generation:` values, overridden by the command line.
GenerationConfig options_of(const GenerateArguments& arguments, GenerationConfig options) {
  const auto set = [](auto& value, const auto& argument) {
    if (argument) value = *argument;
  };
  set(options.max_new_tokens, arguments.max_new_tokens);
  set(options.beam, arguments.beam);
  set(options.temperature, arguments.temperature);
  set(options.top_k, arguments.top_k);
  set(options.top_p, arguments.top_p);
  set(options.seed, arguments.seed);
  set(options.num_samples, arguments.num_samples);
  check(options);
  if (options.beam == 1) return options;
  const auto because =
      arguments.beam ? "" : fmt::format(" (the run's default is {} beams: add --beam 1)", options.beam);
  if (arguments.stream)
    throw UsageError("--stream contradicts beam search, which has no text until its end" + because);
  const bool samples = (arguments.temperature && *arguments.temperature > 0) ||
                       (arguments.top_k && *arguments.top_k > 0) || (arguments.top_p && *arguments.top_p < 1);
  if (samples) {
    throw UsageError("--temperature, --top-k and --top-p contradict beam search, which does not sample" +
                     because);
  }
  return options;
}

void write(std::string_view text) {
  std::cout << text << std::flush;
  if (!std::cout) throw SystemError("cannot write to standard output");
}

nlohmann::ordered_json result_json(const Prompt& prompt, const std::vector<Output>& outputs) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& output : outputs) {
    list.push_back(
        {{"text", output.text}, {"ids", output.ids}, {"logprobs", output.logprobs}, {"score", output.score}});
  }
  return {{"prompt", prompt.text}, {"prompt_ids", prompt.ids}, {"outputs", std::move(list)}};
}

void write_json(nlohmann::ordered_json results) {
  const nlohmann::ordered_json document{{"results", std::move(results)}};
  // A byte model may write bytes that are not UTF-8: they become U+FFFD.
  write(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void stream(const Generator& generator, const std::vector<Prompt>& prompts, const GenerationConfig& options) {
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (int64_t s = 0; s < options.num_samples; ++s) {
      if (options.num_samples > 1 && p + static_cast<size_t>(s) > 0) write("\n");
      const Draw draw{.prompt = p, .sample = static_cast<uint64_t>(s)};
      for (const auto& piece : generator.stream(prompts[p].ids, options, draw)) write(piece);
      write("\n");
    }
  }
}

void generate_text(const GenerateArguments& arguments, const Run& run) {
  const auto options = options_of(arguments, run.experiment().generation);
  const Generator generator(run.model(), run.tokenizer());
  auto prompts = read_prompts(arguments, run.tokenizer(), /*has_masks=*/false);
  if (prompts.empty()) {
    if (!generator.continues_prompt()) fail_without_prompts();
    prompts.emplace_back();  // a text from nothing
  }
  const auto is_empty = [](const Prompt& prompt) { return prompt.ids.empty(); };
  if (!generator.continues_prompt() && std::ranges::all_of(prompts, is_empty)) {
    throw DataError("the prompt is empty: there is nothing to answer");
  }
  if (arguments.stream) return stream(generator, prompts, options);

  std::vector<TokenIds> ids;
  for (const auto& prompt : prompts) ids.push_back(prompt.ids);
  const auto generations = generator.generate(ids, options);
  auto results = nlohmann::ordered_json::array();
  std::string text;
  for (size_t p = 0; p < prompts.size(); ++p) {
    results.push_back(result_json(prompts[p], generations[p].outputs));
    for (const auto& output : generations[p].outputs) {
      if (options.num_samples > 1 && !text.empty()) text += '\n';
      text += output.text + "\n";
    }
  }
  arguments.json ? write_json(std::move(results)) : write(text);
}

void fill_masks(const GenerateArguments& arguments, const Run& run) {
  if (arguments.stream) throw UsageError("--stream: this run fills all masks at once: leave it out");
  const char* const option = arguments.max_new_tokens ? "--max-new-tokens"
                             : arguments.beam         ? "--beam"
                             : arguments.temperature  ? "--temperature"
                             : arguments.top_k        ? "--top-k"
                             : arguments.top_p        ? "--top-p"
                             : arguments.seed         ? "--seed"
                                                      : nullptr;
  if (option)
    throw UsageError(fmt::format("{}: this run fills masks with the likeliest tokens: leave it out", option));
  const FillMaskOptions options{.candidates = arguments.num_samples.value_or(kMaskCandidates),
                                .max_length = run.experiment().model.max_positions};
  auto results = nlohmann::ordered_json::array();
  std::string text;
  const auto prompts = read_prompts(arguments, run.tokenizer(), /*has_masks=*/true);
  if (prompts.empty()) fail_without_prompts();
  for (const auto& prompt : prompts) {
    const auto filled = zoo::fill_masks(run.model(), run.tokenizer(), prompt.ids, options);
    results.push_back(result_json(prompt, filled.outputs));
    text += filled.outputs.front().text + "\n";
    for (size_t mask = 0; mask < filled.masks.size(); ++mask) {
      text += filled.masks.size() > 1 ? fmt::format("  <mask> {}:", mask + 1) : "  <mask>:";
      for (const auto& candidate : filled.masks[mask]) {
        text += fmt::format(" {} {:.1f}%", candidate.shown, 100 * candidate.probability);
      }
      text += '\n';
    }
  }
  arguments.json ? write_json(std::move(results)) : write(text);
}

void generate(const GenerateArguments& arguments) {
  if (arguments.prompt.has_value() + arguments.prompt_ids.has_value() + arguments.input.has_value() > 1) {
    throw UsageError("--prompt, --prompt-ids and --input contradict each other: give one of them");
  }
  if (arguments.stream && arguments.json) {
    throw UsageError("--stream contradicts --json, which is one document at the end");
  }
  const auto run = Run::open(arguments.run, parse_device(arguments.device));
  store_weights(run.model(), arguments.weights.value_or(run.experiment().generation.weights));
  if (run.task().purpose().head == HeadKind::masked_language_modeling) return fill_masks(arguments, run);
  generate_text(arguments, run);
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto arguments = std::make_shared<GenerateArguments>();
  auto* command = app.add_subcommand(
      "generate", "Continue prompts (decoder), answer them (encoder-decoder) or fill their <mask> (encoder)");
  add_run(*command, arguments->run);
  command->add_option("--prompt", arguments->prompt, "The prompt")->type_name("TEXT");
  command->add_option("--prompt-ids", arguments->prompt_ids, "The prompt as token ids: 1,2,3")
      ->type_name("IDS");
  command
      ->add_option(
          "--input", arguments->input,
          "A file with one prompt per line; default: standard input, and if that is empty, a decoder "
          "writes a text from nothing")
      ->type_name("FILE");
  command->add_option("--max-new-tokens", arguments->max_new_tokens, "Most tokens of one output")
      ->type_name("N")
      ->check(whole_number(1));
  command->add_option("--beam", arguments->beam, "Beams of beam search; 1 = none")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  command
      ->add_option("--temperature", arguments->temperature, "Divides the logits before sampling; 0 = greedy")
      ->type_name("T");
  command->add_option("--top-k", arguments->top_k, "Sample among the k likeliest tokens; 0 = all")
      ->type_name("K")
      ->check(whole_number(0));
  command
      ->add_option("--top-p", arguments->top_p,
                   "Sample among the likeliest tokens that make up this probability; 1 = all")
      ->type_name("P");
  command->add_option("--seed", arguments->seed, "The same seed gives the same text")
      ->type_name("S")
      ->check(whole_number(0));
  command
      ->add_option("--num-samples", arguments->num_samples,
                   "Outputs for each prompt; with beam search the n best; candidates for each <mask>")
      ->type_name("N")
      ->check(whole_number(1));
  command->add_flag("--stream", arguments->stream, "Write text as it is generated");
  add_json(*command, arguments->json);
  add_weights(*command, arguments->weights);
  add_device(*command, arguments->device);
  command->footer("Defaults are the values under generation: in the run's configuration.");
  command->callback([arguments] { generate(*arguments); });
}

}  // namespace zoo
