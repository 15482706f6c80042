#include "experiments/own_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/stored_model.h"
#include "data/tables.h"
#include "experiments/load_experiment.h"
#include "experiments/own_examples.h"
#include "experiments/own_pairs.h"
#include "io/config/yaml_text.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/json_document.h"
#include "models/families/model_cost.h"
#include "tasks/task_type.h"
#include "text/conversations.h"
#include "text/corpus.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// What depends on the length of the text.
struct Size {
  double up_to;  // bytes of text
  int64_t d_model, n_layers, n_heads, sequence_length, batch_size;
  double dropout;  // the less text, the more often it is read, and the sooner it is known by heart
  double passes;   // how often the text is read
  int64_t merges;  // pieces of several characters in the vocabulary; 0: see merges_for()
  double valid_fraction;
};
constexpr auto sizes = std::to_array<Size>({
    {20e3, 128, 3, 4, 64, 8, 0.2, 25, 0, 0.1},
    {100e3, 128, 4, 4, 128, 8, 0.2, 12, 300, 0.1},
    {1e6, 128, 4, 4, 128, 16, 0.1, 10, 1500, 0.1},
    {1e300, 160, 4, 5, 128, 16, 0.0, 2, 3000, 0.05},
});
/// Bounds of the number of steps. With the largest size 1000 steps take three minutes on two cores.
constexpr double least_steps = 60, most_steps = 1000;
/// The training of a text ends by this time, on a busy machine before its last step.
constexpr int64_t most_seconds = 300;
/// What two cores do in a second of training such a model (docs/performance.md), and the seconds that making
/// a vocabulary and tokens takes for each byte of text. For an estimate of the time.
constexpr double flops_per_second = 1.2e11, preparation_per_byte = 2e-6;
/// Shorter texts are refused.
constexpr size_t least_characters = 500;

struct Facts {
  int64_t bytes = 0, characters = 0, distinct = 0;
};

std::string shown_size(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1000        ? fmt::format("{} bytes", bytes)
         : bytes < 1'000'000 ? fmt::format("{:.1f} KB", size / 1e3)
                             : fmt::format("{:.1f} MB", size / 1e6);
}

/// How the files are read: texts as they are, rows of tables, conversations. `only_table`: the one file, if
/// it is a table.
DataConfig data_of(const std::vector<fs::path>& files, Table* only_table) {
  DataConfig data;
  std::optional<OwnRows> rows;  // of the files before
  for (const auto& file : files) {
    const auto opened = is_table(file) && !only_table ? open_table(file) : nullptr;
    auto* const table = only_table ? only_table : opened.get();
    const auto more = table ? own_rows(*table, file) : std::nullopt;
    if (is_table(file) && !more)
      throw DataError(fmt::format("{}: a table is not one text: give it alone", file.string()));
    if (!data.train.empty() && more != rows)
      throw DataError(
          fmt::format("{}: the files are not of one form: give those of one form", file.string()));
    data.train.emplace_back(file.string());
    rows = more;
  }
  data.valid = data.train;
  if (!rows) return data;
  data.chat = rows->conversations;
  data.documents = DocumentSplit::line;
  if (!rows->text_column.empty()) data.text_column = {rows->text_column};
  return data;
}

/// The lines of `data:` that say how the files are read.
std::string reading_yaml(const DataConfig& data) {
  if (data.chat) return "  chat: true  # only the answers of the assistant are predicted\n";
  if (data.documents == DocumentSplit::none) return "";
  return fmt::format("  documents: line  # each row\n  text_column: {}\n",
                     yaml_text(data.text_column.front()));
}

void add_text(std::string_view text, const std::string& name, Facts& facts, std::vector<bool>& present) {
  if (const size_t at = text.find('\0'); at != text.npos)
    throw DataError(fmt::format("{}: a byte 0 at {}: this is no text", name, at));
  facts.bytes += static_cast<int64_t>(text.size());
  for (const char32_t c : decode_utf8(text)) {
    ++facts.characters;
    present[c] = true;
  }
}

/// Reads and checks the texts as training will; of conversations all messages. `data` is that of all files.
Facts read_facts(const DataConfig& data) {
  Facts facts;
  std::vector<bool> present(0x110000);
  for (const auto& file : data.train) {
    auto one = data;
    one.train = one.valid = {file};
    Corpus corpus(one, /*most_kept=*/0);
    if (data.chat) {
      visit_conversations(corpus, Split::train,
                          [&](const Conversation& conversation, const std::string& place) {
                            add_text(json_text(conversation["messages"]), place, facts, present);
                          });
    } else {
      corpus.visit(Split::train, [&](const Document& document, Split) {
        add_text(document.text, file.text, facts, present);
      });
    }
  }
  facts.distinct = std::ranges::count(present, true);
  if (facts.characters < static_cast<int64_t>(least_characters)) {
    throw DataError(fmt::format("{}: {} characters are too short a text to learn from: give at least {}",
                                data.train.front().text, facts.characters, least_characters));
  }
  return facts;
}

const Size& size_for(const Facts& facts) {
  return *std::ranges::find_if(
      sizes, [&](const Size& size) { return static_cast<double>(facts.bytes) <= size.up_to; });
}

double bytes_per_character(const Facts& facts) {
  return static_cast<double>(facts.bytes) / static_cast<double>(facts.characters);
}

/// How many pieces of several characters the vocabulary has; 0: its tokens are bytes. A short text in an
/// alphabet of one byte per character is read as bytes. Where a character has two or three bytes, pieces
/// learn much faster.
int64_t merges_for(const Size& size, const Facts& facts) {
  constexpr int64_t few = 150;
  return size.merges > 0 || bytes_per_character(facts) < 1.5 ? size.merges : few;
}

std::string tokenizer_yaml(const Size& size, const Facts& facts, const DataConfig& data) {
  constexpr int64_t n_bytes = 256, n_special = 7;
  const int64_t merges = merges_for(size, facts);
  if (merges == 0) return "{type: byte}";
  // One token for each byte, character and merge, one for unknown characters, which do not occur. Rows end
  // with a special token.
  const bool has_rows = data.documents != DocumentSplit::none;
  return fmt::format("{{type: sentencepiece, model: bpe, vocab_size: {}{}}}",
                     n_bytes + (has_rows ? n_special : 1) + facts.distinct + merges,
                     has_rows ? "" : ", special_tokens: false");
}

/// About how many bytes of a text become one token.
double bytes_per_token(const Size& size, const Facts& facts) {
  const int64_t merges = merges_for(size, facts);
  if (merges == 0) return 1;
  return std::max(1.6 + 0.5 * std::log2(static_cast<double>(merges) / 100),
                  1.15 * bytes_per_character(facts));
}

/// A number of steps with two digits that are not zero.
int64_t rounded(double steps) {
  const double unit = std::pow(10, std::floor(std::log10(steps)) - 1);
  return std::lround(std::round(steps / unit) * unit);
}

/// The run that `init_from=RUN` among the overrides names; nullopt if there is none.
std::optional<std::string> source_in(const std::vector<std::string>& overrides) {
  constexpr std::string_view key = "init_from=";
  std::optional<std::string> source;
  for (const auto& override : overrides) {
    if (override.starts_with(key)) source = override.substr(key.size());
  }
  return source == "null" || source == "" ? std::nullopt : source;
}

/// The files as a YAML list.
std::string listed(const std::vector<ConfigPath>& files) {
  std::vector<std::string> train;
  for (const auto& file : files) train.push_back(yaml_text(file.text));
  return fmt::format("[{}]", fmt::join(train, ", "));
}

int64_t steps_for(const Size& size, double tokens, int64_t sequence_length) {
  const auto step_tokens = static_cast<double>(size.batch_size * sequence_length);
  return rounded(std::clamp(size.passes * tokens / step_tokens, least_steps, most_steps));
}

/// For a model that has been trained before: small steps keep what it has learnt.
std::string yaml_of_tuning(const std::string& name, const DataConfig& data, const Size& size,
                           const Facts& facts, double tokens, const std::string& source) {
  const auto before = experiment_of_source(ConfigPath(source));
  const int64_t steps = steps_for(size, tokens, before.data.sequence_length);
  return fmt::format(
      R"(# Chosen for {bytes} of text. Task, model and vocabulary are those of the run. `zoo config` explains the keys.
name: {name}
init_from: {source}
data:
  train: {train}
{reading}  valid_fraction: {valid_fraction}  # the end of the text
training:
  steps: {steps}
  max_seconds: {most_seconds}  # on a slow machine the learning rate falls sooner
  batch_size: {batch_size}
  optimizer: {{type: adamw, lr: 3.0e-4, betas: [0.9, 0.95], weight_decay: 0.01}}
  schedule: {{type: cosine, warmup_steps: {warmup}}}
  evaluate_every: {evaluate_every}  # the weights of the best evaluation are kept
  evaluate_batches: 40
  checkpoint_every: {checkpoint_every}
  keep_checkpoints: 1
)",
      fmt::arg("bytes", shown_size(facts.bytes)), fmt::arg("name", yaml_text(name)),
      fmt::arg("source", yaml_text(source)), fmt::arg("train", listed(data.train)),
      fmt::arg("reading", reading_yaml(data)), fmt::arg("valid_fraction", size.valid_fraction),
      fmt::arg("steps", steps), fmt::arg("most_seconds", most_seconds),
      fmt::arg("batch_size", size.batch_size), fmt::arg("warmup", std::max<int64_t>(steps / 20, 5)),
      fmt::arg("evaluate_every", std::max<int64_t>(steps / 10, 1)),
      fmt::arg("checkpoint_every", std::max<int64_t>(steps / 4, 1)));
}

std::string yaml_of(const std::string& name, const DataConfig& data, const Size& size, const Facts& facts,
                    double tokens) {
  const int64_t steps = steps_for(size, tokens, size.sequence_length);
  return fmt::format(
      R"(# Chosen for {bytes} of text. `zoo config` explains the keys.
name: {name}
task: language_modeling
data:
  train: {train}
{reading}  valid_fraction: {valid_fraction}  # the end of the text
  sequence_length: {length}
  tokenizer: {tokenizer}
model:
  architecture: decoder
  d_model: {d_model}
  n_layers: {n_layers}
  n_heads: {n_heads}
  norm: rms_norm
  activation: swiglu
  position: rotary
  max_positions: {length}
  bias: false
  projection: fused
  gate: fused
  tie_embeddings: true
  dropout: {dropout}
training:
  steps: {steps}
  max_seconds: {most_seconds}  # on a slow machine the learning rate falls sooner
  batch_size: {batch_size}
  optimizer: {{type: muon, lr: 0.02, betas: [0.9, 0.95], weight_decay: 0.01, muon: {{adamw_lr: 3.0e-3}}}}
  schedule: {{type: cosine, warmup_steps: {warmup}}}
  evaluate_every: {evaluate_every}  # the weights of the best evaluation are kept
  evaluate_batches: 40
  checkpoint_every: {checkpoint_every}
  keep_checkpoints: 1
generation: {{temperature: 0.8, top_k: 50, max_new_tokens: 200}}
)",
      fmt::arg("bytes", shown_size(facts.bytes)), fmt::arg("name", yaml_text(name)),
      fmt::arg("train", listed(data.train)), fmt::arg("reading", reading_yaml(data)),
      fmt::arg("valid_fraction", size.valid_fraction), fmt::arg("length", size.sequence_length),
      fmt::arg("tokenizer", tokenizer_yaml(size, facts, data)), fmt::arg("d_model", size.d_model),
      fmt::arg("n_layers", size.n_layers), fmt::arg("n_heads", size.n_heads),
      fmt::arg("dropout", fmt::format("{:.1f}", size.dropout)), fmt::arg("steps", steps),
      fmt::arg("most_seconds", most_seconds), fmt::arg("batch_size", size.batch_size),
      fmt::arg("warmup", std::max<int64_t>(steps / 20, 5)),
      fmt::arg("evaluate_every", std::max<int64_t>(steps / 10, 1)),
      fmt::arg("checkpoint_every", std::max<int64_t>(steps / 4, 1)));
}

/// The model's parameters and the FLOPs of its training per token; none if the task's model is not known
/// without its data.
std::optional<ModelCost> cost_of(const Experiment& experiment) {
  const auto& tokenizer = experiment.data.tokenizer;
  const auto& type = task_type(experiment);
  if (!type.purpose || tokenizer.type == TokenizerKind::character) return std::nullopt;
  const int64_t vocab_size = tokenizer.type == TokenizerKind::byte ? 256 : tokenizer.vocab_size;
  const auto purpose = type.purpose(experiment, experiment.model.vocab_size.value_or(vocab_size));
  if (!purpose) return std::nullopt;
  return model_cost(experiment.model, *purpose, experiment.data.sequence_length);
}

std::string shown_duration(double seconds) {
  if (seconds < 50) return fmt::format("{:.0f} seconds", std::max(10.0, std::ceil(seconds / 10) * 10));
  const double minutes = std::ceil(seconds / 30) / 2;
  return minutes <= 1 ? "a minute" : fmt::format("{:g} minutes", minutes);
}

Experiment experiment_of(const TextRecipe& recipe, const std::vector<fs::path>& files,
                         const std::vector<std::string>& overrides) {
  const auto name = fmt::format("the configuration that is chosen for {}", excerpt(files.front().string()));
  return read_experiment(ConfigFile::parse_made(recipe.yaml, name, overrides), {});
}

}  // namespace

std::string name_of_run(const fs::path& file) {
  const auto path = file.has_filename() ? file : file.parent_path();
  std::string name = path.stem().string();
  name.erase(0, std::min(name.find_first_not_of('.'), name.size()));
  return name.empty() ? "text" : name;
}

TextRecipe recipe_for(const std::vector<fs::path>& given, const std::vector<std::string>& overrides) {
  const auto files = with_texts_of_folder(given);
  const auto& first = files.front();
  const auto table = files.size() == 1 && is_table(first) ? open_table(first) : nullptr;
  auto recipe_for_data = recipe_for_pairs(files);
  if (!recipe_for_data && files.size() == 1) recipe_for_data = recipe_for_examples(first, table.get());
  if (auto recipe = std::move(recipe_for_data)) {
    recipe->experiment = experiment_of(*recipe, files, overrides);
    return *std::move(recipe);
  }
  const auto data = data_of(files, table.get());
  const auto source = source_in(overrides);
  if (data.chat && !source) {
    throw DataError(fmt::format(
        "{}: conversations train a model that has a chat template: name it, --set init_from=DIRECTORY",
        files.front().string()));
  }
  const Facts facts = read_facts(data);
  const Size& size = size_for(facts);
  TextRecipe recipe;
  recipe.name = name_of_run(files.front());
  recipe.bytes = facts.bytes;
  recipe.tokens = (1 - size.valid_fraction) * static_cast<double>(facts.bytes) / bytes_per_token(size, facts);
  recipe.yaml = source ? yaml_of_tuning(recipe.name, data, size, facts, recipe.tokens, *source)
                       : yaml_of(recipe.name, data, size, facts, recipe.tokens);
  recipe.experiment = experiment_of(recipe, files, overrides);
  return recipe;
}

std::string summary_of(const TextRecipe& recipe) {
  if (!recipe.summary.empty()) return recipe.summary;
  const auto& data = recipe.experiment.data;
  const auto& model = recipe.experiment.model;
  const auto& training = recipe.experiment.training;
  const auto cost = cost_of(recipe.experiment);
  const auto step_tokens =
      static_cast<double>(training.sequences() * training.gradient_accumulation * data.sequence_length);
  const double read = training.epochs ? static_cast<double>(*training.epochs) * recipe.tokens
                                      : step_tokens * static_cast<double>(training.steps);
  const auto amount =
      training.epochs ? fmt::format("{} epochs", *training.epochs) : fmt::format("{} steps", training.steps);

  auto text = fmt::format("{} of text, of which the last {:g} % are for validation\n",
                          shown_size(recipe.bytes), 100 * data.valid_fraction);
  text += fmt::format(
      "  model     {} layers, {} wide, {} heads{}; {} tokens of context\n", model.n_layers, model.d_model,
      model.n_heads,
      cost ? fmt::format(", {:.2g} million parameters", static_cast<double>(cost->parameters) / 1e6) : "",
      data.sequence_length);
  text += fmt::format("  tokens    {}\n",
                      data.tokenizer.type == TokenizerKind::sentencepiece
                          ? fmt::format("{} pieces, by SentencePiece", data.tokenizer.vocab_size)
                      : data.tokenizer.type == TokenizerKind::byte ? "bytes"
                                                                   : "characters");
  text += fmt::format(
      "  training  {} of {} x {} tokens by {}, which is about {:.2g} times the text; dropout {:g}\n", amount,
      training.sequences() * training.gradient_accumulation, data.sequence_length,
      training.optimizer.type.type, read / recipe.tokens, model.dropout);
  if (!cost) return text;
  const double seconds = 3 * cost->flops_per_token * read / flops_per_second +
                         static_cast<double>(recipe.bytes) * preparation_per_byte;
  const double limit = training.max_seconds.value_or(seconds);
  return text + fmt::format("  time      about {} on two cores of a processor\n",
                            shown_duration(std::min(seconds, limit)));
}

Experiment load_experiment_or_text(const fs::path& path, const std::vector<std::string>& overrides) {
  return is_own_text(path) ? recipe_for({path}, overrides).experiment : load_experiment(path, overrides);
}

}  // namespace zoo
