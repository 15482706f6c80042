// zoo bench: how fast a model is, how much memory its training takes, and what longer sequences cost.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/console/commands.h"
#include "apps/console/long_work.h"
#include "apps/console/options.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/run_arguments.h"
#include "base/device.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/stored_model.h"
#include "costs/generation_speed.h"
#include "costs/measure.h"
#include "costs/random_data.h"
#include "costs/scaling.h"
#include "experiments/own_text.h"
#include "generation/generator.h"
#include "generation/prompt.h"
#include "io/files.h"
#include "io/json_document.h"
#include "models/families/model_cost.h"
#include "tasks/preparation.h"
#include "tasks/task.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

constexpr double kUsualSeconds = 2;
constexpr size_t kLongMessage = 1000;  // bytes

struct BenchArguments {
  std::filesystem::path target, base;
  std::vector<std::string> overrides;
  std::optional<int64_t> length, longest;
  double seconds = kUsualSeconds;
  bool scaling = false, json = false;
  std::string device = "auto";
  // These belong to --input, the file with prompts.
  std::optional<std::filesystem::path> input;
  std::vector<int64_t> batch_sizes;
  std::optional<int64_t> max_new_tokens, beam;
  std::optional<WeightFormat> weights;
};

using Json = nlohmann::ordered_json;

Json as_json(const Speed& speed, const ModelCost& cost) {
  Json document{{"train",
                 {{"tokens_per_second", speed.train.tokens_per_second},
                  {"step_ms", speed.train.step_seconds * 1e3},
                  {"peak_memory_bytes", speed.train.peak_memory_bytes}}},
                {"prompt", {{"tokens_per_second", nullptr}}},
                {"decode",
                 {{"tokens_per_second", nullptr},
                  {"first_token_ms", nullptr},
                  {"cache_bytes_per_token", nullptr},
                  {"state_bytes", nullptr}}}};
  if (speed.prompt) document["prompt"]["tokens_per_second"] = speed.prompt->tokens_per_second;
  if (speed.decode) {
    document["decode"]["tokens_per_second"] = speed.decode->tokens_per_second;
    document["decode"]["first_token_ms"] = speed.decode->first_token_seconds * 1e3;
    document["decode"]["cache_bytes_per_token"] = cost.cache_bytes_per_token;
    document["decode"]["state_bytes"] = cost.state_bytes;
  }
  return document;
}

/// "remembers 36.9 kB a token and 1.2 MB a sequence"
std::string remembered(const ModelCost& cost) {
  const auto bytes = [](int64_t n) {
    return n < 1'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(n) / 1e3)
                         : fmt::format("{:.1f} MB", static_cast<double>(n) / 1e6);
  };
  auto text = fmt::format("remembers {} a token", bytes(cost.cache_bytes_per_token));
  if (cost.state_bytes > 0) text += fmt::format(" and {} a sequence", bytes(cost.state_bytes));
  return text;
}

/// `unit`: of the task.
std::string as_text(const Speed& speed, const ModelCost& cost, std::string_view unit) {
  const auto row = [&](std::string_view name, double rate, const std::string& rest) {
    return fmt::format("{:<10} {:>10.0f} {}s/s    {}\n", name, rate, unit, rest);
  };
  auto text = row("training", speed.train.tokens_per_second,
                  fmt::format("{:.1f} ms per step of {:.0f} {}s, {:.1f} MB of tensors at most",
                              speed.train.step_seconds * 1e3, speed.train.tokens_per_step, unit,
                              static_cast<double>(speed.train.peak_memory_bytes) / 1e6));
  if (const auto& prompt = speed.prompt) {
    text += row("prompts", prompt->tokens_per_second,
                fmt::format("{} prompts of {} tokens at once", prompt->prompts, prompt->length));
  }
  if (const auto& decode = speed.decode) {
    text += row("decoding", decode->tokens_per_second,
                fmt::format("one sequence; the first of {} tokens takes {:.2f} ms after a prompt of {}; {}",
                            decode->n_tokens, decode->first_token_seconds * 1e3, decode->prompt_length,
                            remembered(cost)));
  }
  return text;
}

std::string exponent(const std::optional<Exponent>& fitted) {
  if (!fitted) return "–";
  if (!fitted->low) return fmt::format("{:.2f}", fitted->value);
  return fmt::format("{:.2f} ± {:.2f}", fitted->value, (*fitted->high - *fitted->low) / 2);
}

/// One row for each curve: its order, its exponent, and the text of each length.
std::string scaling_table(const std::vector<ScalingCurve>& curves,
                          const std::function<std::string(const ScalingCurve&)>& exponent_of,
                          const std::function<std::string(const ScalingCurve&, size_t)>& cell) {
  std::vector<int64_t> lengths;
  for (const auto& curve : curves) {
    if (curve.lengths.size() > lengths.size()) lengths = curve.lengths;
  }
  auto text = fmt::format("{:<12}  {:<12}  {:>12}", "part", "order", "e");
  for (const int64_t length : lengths) text += fmt::format("  {:>16}", fmt::format("n={}", length));
  for (const auto& curve : curves) {
    text += fmt::format("\n{:<12}  {:<12}  {:>12}", name_of(curve.part), curve.order, exponent_of(curve));
    for (size_t i = 0; i < curve.lengths.size(); ++i) text += fmt::format("  {:>16}", cell(curve, i));
  }
  return text + "\n";
}

std::string as_text(const std::vector<ScalingCurve>& curves) {
  const auto milliseconds = [](const ScalingCurve& curve, size_t i) {
    const double spread = (curve.seconds_high[i] - curve.seconds_low[i]) / 2;
    return fmt::format("{:.3f} ± {:.3f}", curve.seconds[i] * 1e3, spread * 1e3);
  };
  const auto megabytes = [](const ScalingCurve& curve, size_t i) {
    return fmt::format("{:.3f}", static_cast<double>(curve.bytes[i]) / 1e6);
  };
  return fmt::format(
      "Milliseconds over n tokens (median, with half of the distance between the quartiles). training: "
      "forward and backward pass of the attention; decoding: its next token after n; the others: forward "
      "passes. e: exponent of n^e, fitted to the longest half of the lengths, with its 95 % interval\n\n{}\n"
      "Megabytes of tensors at most, without the weights; decoding: of the state after n tokens\n\n{}",
      scaling_table(
          curves, [](const auto& curve) { return exponent(curve.seconds_exponent); }, milliseconds),
      scaling_table(curves, [](const auto& curve) { return exponent(curve.bytes_exponent); }, megabytes));
}

/// The task to measure, on its own data or on random ones.
struct BenchTask {
  std::unique_ptr<Task> own;
  std::unique_ptr<RandomTask> random;

  Task& get() const { return random ? random->task() : *own; }
};

BenchTask task_of(const BenchArguments& arguments) {
  const bool is_run = names_stored_model(arguments.target);
  if (is_run && !arguments.overrides.empty())
    throw UsageError("--set changes a configuration, not a run that is finished");
  if (!is_run) require_no_base(arguments.base);
  BenchTask task;
  if (is_run) task.own = open_stored_model(arguments.target, arguments.base).task;
  const auto experiment =
      is_run ? task.own->experiment() : load_experiment_or_text(arguments.target, arguments.overrides);
  if (const auto missing = missing_data(experiment)) {
    const auto vocabulary =
        is_run ? task.own->vocabulary() : initial_vocabulary(experiment, open_initial_model(experiment));
    task.random = std::make_unique<RandomTask>(experiment, vocabulary);
    std::cerr << fmt::format("note: {}; the model is measured with {}\n", excerpt(*missing, kLongMessage),
                             task.random->description());
  } else if (!is_run) {
    for (const auto& note : {learning_note(experiment), reading_note(experiment.data, Split::train)})
      if (note) std::cerr << *note << '\n';
    task.own = task_of_new_run(experiment);
  }
  return task;
}

// ---- prompts of a file

std::vector<TokenIds> prompts_of(const BenchArguments& arguments, const Run& run) {
  const auto* const model = run.model().generative();
  if (!model) throw UsageError("--input: this run does not write, so it has no answers to measure");
  std::istringstream content(read_file(*arguments.input));
  std::vector<TokenIds> prompts;
  for (const auto& line : read_lines(content, most_prompt_bytes(model->max_length()))) {
    check_utf8(line);
    prompts.push_back(encode_prompt(run.tokenizer(), line, *model));
  }
  if (prompts.empty()) throw DataError(fmt::format("{}: the file is empty", arguments.input->string()));
  return prompts;
}

Json as_json(const GenerationSpeed& speed, int64_t batch_size) {
  const auto& output = speed.first.outputs.front();
  return {{"batch_size", batch_size},
          {"prompts", speed.n_prompts},
          {"first_token_ms", speed.first_token_seconds * 1e3},
          {"seconds", speed.seconds},
          {"tokens_per_second", speed.tokens_per_second},
          {"first_output_ids", output.ids}};
}

/// With --beam 1, a batch of N prompts at once is measured with the first N prompts. Beam search always
/// answers all prompts, in batches of about N beams.
void bench_prompts(const BenchArguments& arguments) {
  const auto run = open_run({.dir = arguments.target,
                             .base = arguments.base,
                             .weights = arguments.weights,
                             .device = arguments.device});
  const auto prompts = prompts_of(arguments, run);
  const Generator generator(run.model(), run.tokenizer());
  auto options = run.experiment().generation;
  options.temperature = 0;
  options.num_samples = 1;
  if (arguments.max_new_tokens) options.max_new_tokens = arguments.max_new_tokens;
  if (!options.max_new_tokens) options.max_new_tokens = kUsualNewTokens;
  if (arguments.beam) options.beam = *arguments.beam;
  const auto sizes =
      arguments.batch_sizes.empty() ? std::vector<int64_t>{options.batch_size} : arguments.batch_sizes;
  auto results = Json::array();
  std::string text;
  for (const int64_t size : sizes) {
    options.batch_size = size;
    const auto n = options.beam > 1 ? std::ssize(prompts) : std::min<int64_t>(size, std::ssize(prompts));
    say_on_terminal(fmt::format("measuring answers to {} prompts in batches of {}", n, size));
    const auto speed = measure_generation(generator, std::span(prompts).first(static_cast<size_t>(n)),
                                          options, arguments.seconds);
    results.push_back(as_json(speed, size));
    text += fmt::format(
        "{:<10} {:>10.0f} tokens/s    {} prompts, {} beam{}, {} tokens each; the first tokens take {:.2f} "
        "ms, all take {:.3f} s\n",
        fmt::format("batch {}", size), speed.tokens_per_second, speed.n_prompts, options.beam,
        options.beam == 1 ? "" : "s", *options.max_new_tokens, speed.first_token_seconds * 1e3,
        speed.seconds);
  }
  std::cout << (arguments.json ? shown_json(Json{{"generation", std::move(results)}}, 2) + "\n" : text);
}

void check_options(const BenchArguments& arguments) {
  if (!arguments.input) return;
  if (!arguments.overrides.empty()) throw UsageError("--set changes a configuration, --input is for a run");
  if (arguments.length)
    throw UsageError("--length is for random prompts: leave it out, or leave out --input");
  if (arguments.scaling) throw UsageError("--scaling contradicts --input: it has no prompts");
}

void bench(const BenchArguments& arguments) {
  check_options(arguments);
  if (arguments.input) return bench_prompts(arguments);
  const auto device = parse_device(arguments.device);
  const auto measured = task_of(arguments);
  auto& task = measured.get();
  const auto& experiment = task.experiment();
  const auto say = [](const std::string& line) { say_on_terminal(line); };
  const auto speed = measure_speed(
      task, device, {.seconds = arguments.seconds, .length = arguments.length, .on_message = say});
  const auto cost = model_cost(experiment.model, task.purpose(), experiment.data.sequence_length);
  std::vector<ScalingCurve> curves;
  if (arguments.scaling) {
    auto options = scaling_options(device);
    options.on_message = say;
    options.max_flops *= arguments.seconds / kUsualSeconds;
    options.seconds *= arguments.seconds / kUsualSeconds;
    if (arguments.longest) {
      options.longest = *arguments.longest;
      options.max_flops = std::numeric_limits<double>::infinity();
      options.max_bytes = std::numeric_limits<int64_t>::max();
    }
    curves = measure_scaling(experiment.model, task.purpose(), device, options);
    if (curves.empty())
      throw UsageError("--scaling: the inputs of this model have one length, so there is nothing to compare");
  }

  if (arguments.json) {
    auto document = as_json(speed, cost);
    if (measured.random) document["data"] = measured.random->kind();
    if (arguments.scaling) {
      document["scaling"] = Json::array();
      for (const auto& curve : curves) document["scaling"].push_back(to_json(curve));
    }
    std::cout << shown_json(document, 2) << '\n';
    return;
  }
  std::cout << fmt::format("{} ({}, {}{})\n\n", experiment.name, experiment.model.architecture.type,
                           device.str(), measured.random ? ", " + measured.random->kind() : "")
            << as_text(speed, cost, task_type(experiment).unit);
  if (arguments.scaling) std::cout << '\n' << as_text(curves);
}

}  // namespace

void add_bench(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  auto* command = app.add_subcommand("bench",
                                     "Measure how fast a model trains, reads and writes, and the memory it "
                                     "takes; without its data, with random tokens or images");
  command->add_option("CONFIG|RUN", arguments->target, "A configuration, the directory of a run, or a text")
      ->type_name("PATH")
      ->required();
  add_base(*command, arguments->base);
  add_overrides(*command, arguments->overrides);
  command
      ->add_option("--length", arguments->length,
                   "Tokens of a generated sequence, prompt included; default: data.sequence_length")
      ->option_text("N")
      ->check(whole_number(1));
  command
      ->add_option("--seconds", arguments->seconds,
                   "Seconds to measure each speed; with more, --scaling reaches longer sequences")
      ->option_text(fmt::format("S={}", kUsualSeconds))
      ->check(number(0, 86400));
  command->add_flag("--scaling", arguments->scaling,
                    "Also measure time and memory of attention (forward, training and decoding), "
                    "feed-forward, norm and model at growing lengths");
  command
      ->add_option("--longest", arguments->longest,
                   "With --scaling: measure lengths up to N, however long it takes")
      ->option_text("N")
      ->check(whole_number(64))
      ->needs("--scaling");
  command
      ->add_option("--input", arguments->input,
                   "Measure how fast a run answers the prompts in the lines of this file, and nothing else")
      ->option_text("FILE");
  const auto of_prompts = [&](CLI::Option* option, const char* letter, int64_t least) {
    option->option_text(letter)->needs("--input")->check(whole_number(least));
  };
  of_prompts(command->add_option("--batch-size", arguments->batch_sizes,
                                 "With --input: outputs that grow together; several are measured in turn; "
                                 "default: the run's generation.batch_size"),
             "N…", 1);
  of_prompts(command->add_option("--max-new-tokens", arguments->max_new_tokens,
                                 "With --input: tokens of each answer; default: the run's"),
             "N", 1);
  of_prompts(command->add_option("--beam", arguments->beam, "With --input: beams; default: the run's"), "N",
             1);
  add_weights(*command, arguments->weights)->needs("--input");
  add_device(*command, arguments->device);
  add_json(*command, arguments->json);
  command->callback([arguments] { bench(*arguments); });
}

}  // namespace zoo
