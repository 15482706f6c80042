// zoo generate: text from a trained model. A decoder continues each prompt, an encoder-decoder answers it, a
// masked language model fills its masks.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
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
#include "apps/console/config_options.h"
#include "apps/console/interrupts.h"
#include "apps/console/long_work.h"
#include "apps/console/options.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/run_arguments.h"
#include "apps/console/token_ids.h"
#include "apps/use/chat.h"
#include "base/error.h"
#include "generation/fill_mask.h"
#include "generation/generator.h"
#include "generation/prompt.h"
#include "io/files.h"
#include "io/json_document.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

struct GenerateArguments {
  RunArguments run;
  ConfigOptions search;  // keys of GenerationConfig
  std::vector<std::string> prompts;
  std::optional<std::filesystem::path> json_schema;
  std::optional<std::string> prompt_ids;
  std::optional<std::filesystem::path> input, draft;
  std::optional<WeightFormat> draft_weights;
  bool stream = false, json = false, chat = false, special_tokens = false;
  std::optional<std::string> system;

  bool names_prompts() const { return !prompts.empty() || prompt_ids || input; }
};

struct GivenPrompt {
  std::string text;
  TokenIds ids;
};

// Default number of candidates for each mask.
constexpr int64_t kMaskCandidates = 5;

// ---- prompts

TokenIds prompt_ids(std::string_view text) {
  TokenIds ids;
  for (const auto& part : parts_at_commas(text)) ids.push_back(parse_token_id(part, "--prompt-ids: "));
  return ids;
}

/// How the prompts of a run become tokens.
struct PromptReader {
  const Tokenizer& tokenizer;
  int64_t max_length;             // the most tokens that the model reads
  const GenerativeModel* writer;  // null: the model fills masks

  size_t most_bytes() const { return most_prompt_bytes(max_length); }

  GivenPrompt read(std::string text) const {
    check_prompt_size(text, max_length);
    check_utf8(text);
    auto ids = writer ? encode_prompt(tokenizer, text, *writer) : tokenizer.encode_masked(text);
    return {.text = std::move(text), .ids = std::move(ids)};
  }
};

[[noreturn]] void fail_without_prompts() {
  throw DataError("standard input is empty: write one prompt per line, or give --prompt TEXT");
}

/// No texts if standard input is empty.
std::vector<std::string> prompt_texts(const GenerateArguments& arguments, size_t most_bytes) {
  if (!arguments.prompts.empty()) return arguments.prompts;
  if (!arguments.input) return read_lines(std::cin, most_bytes);
  std::istringstream content(read_file(*arguments.input));
  auto lines = read_lines(content, most_bytes);
  if (lines.empty()) throw DataError(fmt::format("{}: the file is empty", arguments.input->string()));
  return lines;
}

std::vector<GivenPrompt> read_prompts(const GenerateArguments& arguments, const PromptReader& reader) {
  if (arguments.prompt_ids) {
    const auto ids = prompt_ids(*arguments.prompt_ids);
    return {{.text = reader.tokenizer.decode(ids), .ids = ids}};
  }
  std::vector<GivenPrompt> prompts;
  for (auto& text : prompt_texts(arguments, reader.most_bytes())) {
    try {
      prompts.push_back(reader.read(std::move(text)));
    } catch (const DataError& error) {
      throw DataError(fmt::format("prompt {}: {}", prompts.size() + 1, error.what()));
    }
  }
  return prompts;
}

/// Whether a person types the prompts and sees each answer at once.
bool is_conversation(const GenerateArguments& arguments) {
  return !arguments.names_prompts() && !arguments.json && input_is_typed();
}

// ---- output

void write(std::string_view text) {
  std::cout << text << std::flush;
  if (!std::cout) throw SystemError("cannot write to standard output");
}

nlohmann::ordered_json result_json(const GivenPrompt& prompt, const std::vector<Output>& outputs) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& output : outputs) {
    list.push_back({{"text", output.text},
                    {"ids", output.ids},
                    {"logprobs", output.logprobs},
                    {"score", output.score},
                    {"end", name_of(output.end)}});
    if (output.n_proposed > 0) {
      list.back()["proposed"] = output.n_proposed;
      list.back()["accepted"] = output.n_accepted;
    }
  }
  return {{"prompt", prompt.text}, {"prompt_ids", prompt.ids}, {"outputs", std::move(list)}};
}

void write_json(nlohmann::ordered_json results, const Run& run) {
  const nlohmann::ordered_json document{{"results", std::move(results)},
                                        {"weights", name_of(run.weight_format())}};
  // A byte model may write bytes that are not UTF-8: they become U+FFFD.
  write(shown_json(document) + "\n");
}

/// How people see the outputs. A continuation stands after its prompt; several have headings. An answer is a
/// line of its own, so that the lines of a translation are those of its source; several answers to one prompt
/// are a numbered list below it.
struct Layout {
  bool continues_prompt, several_prompts, several_samples;

  /// The text before output `s` of prompt `p`. A line break follows the output.
  std::string before(size_t p, int64_t s, const GivenPrompt& prompt) const {
    const std::string gap = p > 0 || s > 0 ? "\n" : "";
    if (!continues_prompt) {
      if (!several_samples) return "";
      return (s > 0 ? "" : gap + prompt.text + "\n") + fmt::format("  {}. ", s + 1);
    }
    if (!several_prompts && !several_samples) return prompt.text;
    if (!several_samples) return fmt::format("{}=== prompt {}\n{}", gap, p + 1, prompt.text);
    if (!several_prompts) return fmt::format("{}=== sample {}\n{}", gap, s + 1, prompt.text);
    return fmt::format("{}=== prompt {}, sample {}\n{}", gap, p + 1, s + 1, prompt.text);
  }
};

// ---- models that write

std::string read_schema(const std::filesystem::path& path) {
  auto schema = read_file(path);
  if (schema.empty()) throw DataError(fmt::format("{}: the file is empty", path.string()));
  return schema;
}

void check_draft(const GenerateArguments& arguments, const GenerationConfig& options) {
  if (!arguments.draft && (arguments.search.given.has("draft_tokens") || arguments.draft_weights))
    throw UsageError("--draft-tokens and --draft-weights belong to --draft RUN");
  if (arguments.draft && options.prompt_lookup > 0)
    throw UsageError("--draft contradicts prompt look-up: tokens are proposed in one way");
  if (arguments.draft && options.beam > 1)
    throw UsageError("--draft proposes tokens for greedy search and sampling: add --beam 1");
}

/// Refuses options that have no effect on the outputs of this search.
void check_uses(const GenerateArguments& arguments, const GenerationConfig& options) {
  const auto& search = arguments.search;
  if (options.beam == 1) {
    if (const auto flags = search.given_flags(OptionUse::beams); !flags.empty())
      throw UsageError(fmt::format("{} is for beam search: add --beam N of 2 or more", flags.front()));
    return;
  }
  const auto because = search.given.has("beam")
                           ? ""
                           : fmt::format(" (the run's default is {} beams: add --beam 1)", options.beam);
  if (arguments.stream)
    throw UsageError("--stream contradicts beam search, which has no text until its end" + because);
  // An option that is given as "off" does no harm.
  const GenerationConfig off{.temperature = 0};
  for (const auto& flag : search.flags) {
    if (flag.use != OptionUse::sampling || !search.given.has(flag.key)) continue;
    auto changed = off;
    search.given.apply_one(flag.key, changed);
    if (dump_config(changed) != dump_config(off))
      throw UsageError(
          fmt::format("{} contradicts beam search, which does not sample{}", flag.name, because));
  }
}

/// The run's `generation:` values, overridden by the command line.
GenerationConfig options_of(const GenerateArguments& arguments, GenerationConfig options) {
  const auto& given = arguments.search.given;
  // Each of these takes the place of the run's other one.
  if (given.has("max_new_tokens") || given.has("max_length"))
    options.max_new_tokens = options.max_length = std::nullopt;
  if (given.has("regex") || arguments.json_schema) options.regex = options.json_schema = "";
  given.apply(options);
  if (arguments.json_schema) options.json_schema = read_schema(*arguments.json_schema);
  check_draft(arguments, options);
  check(options);
  check_uses(arguments, options);
  return options;
}

class Writer {
 public:
  Writer(const GenerateArguments& arguments, const Run& run)
      : arguments_(arguments),
        run_(run),
        options_(options_of(arguments, run.experiment().generation)),
        generator_(run.model(), run.tokenizer()),
        reader_{.tokenizer = run.tokenizer(),
                .max_length = run.model().generative()->max_length(),
                .writer = run.model().generative()} {
    if (!arguments.draft) return;
    draft_ = open_run(
        {.dir = *arguments.draft, .weights = arguments.draft_weights, .device = arguments.run.device});
    require_same_vocabulary(*draft_, run);
    generator_.use_draft(draft_->model());
  }

  void run() const {
    if (is_conversation(arguments_)) return converse();
    auto prompts = read_prompts(arguments_, reader_);
    if (prompts.empty()) {
      if (!generator_.continues_prompt()) fail_without_prompts();
      prompts.emplace_back();  // a text from nothing
    }
    const auto is_empty = [](const GivenPrompt& prompt) { return prompt.ids.empty(); };
    if (!generator_.continues_prompt() && std::ranges::all_of(prompts, is_empty))
      throw DataError("the prompt is empty: there is nothing to answer");
    if (!arguments_.stream) return write_all(prompts);
    const auto layout = layout_of(prompts.size());
    for (size_t p = 0; p < prompts.size(); ++p) stream(p, prompts[p], layout);
  }

 private:
  Layout layout_of(size_t n_prompts) const {
    return {.continues_prompt = generator_.continues_prompt(),
            .several_prompts = n_prompts > 1,
            .several_samples = options_.num_samples > 1};
  }

  /// The prompt's number selects its random numbers: the same lines give the same texts as a file of them.
  void converse() const {
    const auto* const invitation = generator_.continues_prompt()
                                       ? "Type the beginning of a text and press Enter"
                                       : "Type a text to answer and press Enter";
    const Interrupts interrupts;
    zoo::converse(invitation, reader_.most_bytes(), [&](size_t number, std::string line) {
      const auto prompt = reader_.read(std::move(line));
      if (options_.beam > 1) return write_all({prompt});  // its text comes at the end, so Ctrl-C ends all
      const Interrupts::Answer answer(interrupts);
      stream(number, prompt, layout_of(1), [&] { return answer.is_interrupted(); });
    });
  }

  /// `is_interrupted` is asked after each piece, and ends the text.
  void stream(
      size_t p, const GivenPrompt& prompt, const Layout& layout,
      const std::function<bool()>& is_interrupted = [] { return false; }) const {
    for (int64_t s = 0; s < options_.num_samples && !is_interrupted(); ++s) {
      const Draw draw{.prompt = p, .sample = static_cast<uint64_t>(s)};
      auto pieces = generator_.stream(prompt.ids, options_, draw);
      write(layout.before(layout.several_prompts ? p : 0, s, prompt));
      for (const auto& piece : pieces) {
        write(piece);
        if (is_interrupted()) break;
      }
      write("\n");
    }
  }

  /// All texts appear at the end.
  void say_if_long(int64_t n_prompts) const {
    constexpr int64_t many_tokens = 2000;
    const int64_t n_texts = n_prompts * options_.num_samples;
    const int64_t most = options_.max_new_tokens.value_or(options_.max_length.value_or(kUsualNewTokens));
    if (n_texts * most < many_tokens) return;
    say_on_terminal(
        fmt::format("writing {} text{} of up to {} tokens", n_texts, n_texts == 1 ? "" : "s", most));
  }

  void write_all(const std::vector<GivenPrompt>& prompts) const {
    std::vector<TokenIds> ids;
    for (const auto& prompt : prompts) ids.push_back(prompt.ids);
    say_if_long(std::ssize(prompts));
    const auto generations = generator_.generate(ids, options_);
    if (arguments_.json) {
      auto results = nlohmann::ordered_json::array();
      for (size_t p = 0; p < prompts.size(); ++p)
        results.push_back(result_json(prompts[p], generations[p].outputs));
      return write_json(std::move(results), run_);
    }
    const auto layout = layout_of(prompts.size());
    std::string text;
    for (size_t p = 0; p < prompts.size(); ++p) {
      const auto& outputs = generations[p].outputs;
      for (size_t s = 0; s < outputs.size(); ++s)
        text += layout.before(p, static_cast<int64_t>(s), prompts[p]) + outputs[s].text + "\n";
    }
    write(text);
  }

  const GenerateArguments& arguments_;
  const Run& run_;
  const GenerationConfig options_;
  std::optional<Run> draft_;  // proposes tokens
  Generator generator_;
  const PromptReader reader_;
};

// ---- conversations

/// Each prompt, or line of standard input, is the next message of one conversation. A person types messages.
void chat(const GenerateArguments& arguments, const Run& run) {
  if (arguments.prompt_ids) throw UsageError("--chat reads messages, not --prompt-ids");
  if (arguments.draft)
    throw UsageError("--draft is for prompts, not for --chat: use --prompt-lookup N, or leave it out");
  const auto options = options_of(arguments, run.experiment().generation);
  if (options.num_samples > 1)
    throw UsageError("--chat gives one answer to a message: leave out --num-samples");
  Chat chat(run, options,
            {.system = arguments.system,
             .marks = arguments.special_tokens ? MarksInMessages::tokens : MarksInMessages::text,
             .base = arguments.run.base});
  const size_t most_bytes = most_prompt_bytes(run.model().generative()->max_length());
  if (is_conversation(arguments) && options.beam == 1) return converse_with(chat, most_bytes);
  const auto messages = prompt_texts(arguments, most_bytes);
  if (messages.empty()) fail_without_prompts();
  auto results = nlohmann::ordered_json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!arguments.json && options.beam == 1) {
      chat.answer(messages[i], i);
      continue;
    }
    const auto generation = chat.answer_at_once(messages[i]);
    if (arguments.json) {
      results.push_back(result_json({.text = messages[i], .ids = generation.prompt_ids}, generation.outputs));
    } else {
      write(generation.outputs[0].text + "\n");
    }
  }
  if (arguments.json) write_json(std::move(results), run);
}

void check_chat_options(const GenerateArguments& arguments) {
  if (arguments.chat) return;
  if (arguments.system) throw UsageError("--system belongs to --chat");
  if (arguments.special_tokens) throw UsageError("--special-tokens belongs to --chat");
}

// ---- models that fill masks

void refuse_options_of_writers(const GenerateArguments& arguments) {
  auto flags = arguments.search.given_flags();
  std::erase(flags, "--num-samples");
  if (arguments.stream) flags.emplace_back("--stream");
  if (arguments.json_schema) flags.emplace_back("--json-schema");
  if (arguments.draft) flags.emplace_back("--draft");
  if (arguments.draft_weights) flags.emplace_back("--draft-weights");
  if (!flags.empty()) {
    throw UsageError(
        fmt::format("{}: this run fills masks with the likeliest tokens: leave it out", flags.front()));
  }
}

/// The text with its masks filled, and the candidates for each mask.
std::string as_text(const FilledMasks& filled) {
  std::string text = filled.outputs.front().text + "\n";
  for (size_t mask = 0; mask < filled.masks.size(); ++mask) {
    text += filled.masks.size() > 1 ? fmt::format("  <mask> {}:", mask + 1) : "  <mask>:";
    for (const auto& candidate : filled.masks[mask])
      text += fmt::format(" {} {:.1f}%", candidate.shown, 100 * candidate.probability);
    text += '\n';
  }
  return text;
}

void fill_masks(const GenerateArguments& arguments, const Run& run) {
  refuse_options_of_writers(arguments);
  GenerationConfig search{.num_samples = kMaskCandidates};
  arguments.search.given.apply(search);
  const FillMaskOptions options{.candidates = search.num_samples,
                                .max_length = run.experiment().model.max_positions};
  const PromptReader reader{
      .tokenizer = run.tokenizer(), .max_length = options.max_length, .writer = nullptr};
  const auto fill = [&](const GivenPrompt& prompt) {
    return zoo::fill_masks(run.model(), run.tokenizer(), prompt.ids, options);
  };
  if (is_conversation(arguments)) {
    return converse("Type a text with <mask> and press Enter", reader.most_bytes(),
                    [&](size_t, std::string line) { write(as_text(fill(reader.read(std::move(line))))); });
  }
  auto results = nlohmann::ordered_json::array();
  std::string text;
  const auto prompts = read_prompts(arguments, reader);
  if (prompts.empty()) fail_without_prompts();
  for (const auto& prompt : prompts) {
    const auto filled = fill(prompt);
    results.push_back(result_json(prompt, filled.outputs));
    text += as_text(filled);
  }
  arguments.json ? write_json(std::move(results), run) : write(text);
}

void generate(const GenerateArguments& arguments) {
  if (arguments.stream && arguments.json) {
    throw UsageError("--stream contradicts --json, which is one document at the end");
  }
  check_chat_options(arguments);
  const auto run = open_run(arguments.run);
  const auto& tokenizer = run.task().vocabulary().tokenizer;
  if (tokenizer && !tokenizer->has_texts() && !arguments.json) {
    throw UsageError(
        "the model has no tokenizer, so its outputs are no texts: give --prompt-ids, and --json for the ids "
        "of the outputs");
  }
  if (arguments.chat) return chat(arguments, run);
  if (run.task().purpose().head == HeadKind::masked_language_modeling) return fill_masks(arguments, run);
  Writer(arguments, run).run();
}

/// Options that propose tokens, which the model checks.
void add_speculation(CLI::App& command, GenerateArguments& arguments) {
  command
      .add_option(
          "--draft", arguments.draft,
          "A smaller run with the same vocabulary: it proposes tokens, and the model checks several at once")
      ->type_name("RUN");
  command
      .add_option("--draft-weights", arguments.draft_weights,
                  "How --draft stores its weights, as --weights; default: the draft's generation.weights")
      ->transform(one_of<WeightFormat>())
      ->option_text("FORMAT");
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto arguments = std::make_shared<GenerateArguments>();
  auto* command = app.add_subcommand(
      "generate", "Continue prompts (decoder), answer them (encoder-decoder) or fill their <mask> (encoder)");
  add_run(*command, arguments->run.dir);
  auto* const prompt = command->add_option("--prompt", arguments->prompts, "A prompt; may be repeated");
  prompt->option_text("TEXT")->allow_extra_args(false);
  auto* const ids =
      command->add_option("--prompt-ids", arguments->prompt_ids, "The prompt as token ids: 1,2,3");
  ids->type_name("IDS")->excludes(prompt);
  command
      ->add_option(
          "--input", arguments->input,
          "A file with one prompt per line; default: standard input, and if that is empty, a decoder writes "
          "a text from nothing. Prompts that are typed on a terminal are answered one by one, until Ctrl-D")
      ->type_name("FILE")
      ->excludes(prompt)
      ->excludes(ids);
  add_config_options<GenerationConfig>(*command, arguments->search);
  command->get_option("--max-length")->excludes("--max-new-tokens");
  command
      ->add_option_function<int64_t>(
          "--max-tokens",
          [&given = arguments->search.given](const int64_t& most) { given.set("max_new_tokens", most); },
          "The same as --max-new-tokens")
      ->type_name("N")
      ->check(whole_number(1))
      ->excludes("--max-new-tokens")
      ->excludes("--max-length");
  command
      ->add_option("--json-schema", arguments->json_schema,
                   "Every output is JSON that the schema in this file describes: a subset of JSON Schema")
      ->type_name("FILE")
      ->excludes("--regex");
  add_speculation(*command, *arguments);
  command->add_flag("--chat", arguments->chat,
                    "Hold a conversation by the model's chat template: on a terminal until /exit; else each "
                    "prompt, or line of standard input, is the next message");
  command->add_option("--system", arguments->system, "With --chat: the system prompt")->option_text("TEXT");
  command->add_flag("--special-tokens", arguments->special_tokens,
                    "With --chat: take the text of special tokens in messages for these tokens");
  command->add_flag("--stream", arguments->stream, "Write text as it is generated");
  add_json(*command, arguments->json);
  add_base(*command, arguments->run.base);
  add_checkpoint(*command, arguments->run.checkpoint);
  add_weights(*command, arguments->run.weights);
  add_cache(*command, arguments->run.cache);
  add_device(*command, arguments->run.device);
  command->footer("Defaults are the values under generation: in the run's configuration.");
  command->callback([arguments] { generate(*arguments); });
}

}  // namespace zoo
