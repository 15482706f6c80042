// Directories as transformers 5 and 4 write them, opened as the commands open them, against what transformers
// computes; and the way back.

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include "analysis/contacts.h"
#include "analysis/embeddings.h"
#include "analysis/text_layout.h"
#include "checkpoints/import_run.h"
#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "generation/generator.h"
#include "generation/text_scores.h"
#include "interop/foreign_model.h"
#include "io/json_document.h"
#include "tasks/ctc.h"
#include "tests/parity/reference.h"
#include "tests/support/temp_dir.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 1e-4;

/// A directory that reference_interop.py makes.
struct Case {
  Transformers version;
  std::string name;
};

class ForeignModels : public ReferenceTest, public ::testing::WithParamInterface<Case> {
 protected:
  ForeignModels() : ReferenceTest("reference_interop.py", GetParam().version) {}

  std::filesystem::path directory() const { return file(GetParam().name).replace_extension(); }
  SafetensorsFile reference() const { return SafetensorsFile(file(GetParam().name)); }

  /// Compares the objects in a picture file. Both programs resize the picture and round its pixels.
  void expect_objects(const zoo::Run& run, const SafetensorsFile& reference) const {
    constexpr double pixels = 0.2, close = 2e-3;
    const auto picture = directory().replace_extension(".png").string();
    const auto predictions = run.task().predict(run.model(), {picture});
    const auto& objects = predictions.front().objects();
    const auto scores = reference.tensor("found_scores"), corners = reference.tensor("found_corners");
    ASSERT_EQ(std::ssize(objects), scores.numel());
    for (int64_t i = 0; i < scores.numel(); ++i) {
      const auto& object = objects[static_cast<size_t>(i)];
      const auto label = reference.tensor("found_labels")[i].item<int64_t>();
      EXPECT_EQ(object.label, run.task().vocabulary().labels[static_cast<size_t>(label)]);
      EXPECT_NEAR(object.score, scores[i].item<double>(), close);
      const auto& box = object.box;
      expect_close(torch::tensor({box.x, box.y, box.x + box.width, box.y + box.height}),
                   corners[i].to(torch::kDouble), "box", pixels);
    }
  }
};

/// Those that generate text.
class ForeignWriters : public ForeignModels {};

/// The rows of (B, T, …) that are real tokens.
torch::Tensor real_rows(const torch::Tensor& tensor, const torch::Tensor& lengths) {
  std::vector<torch::Tensor> rows;
  for (int64_t row = 0; row < tensor.size(0); ++row)
    rows.push_back(tensor[row].narrow(0, 0, lengths[row].item<int64_t>()));
  return torch::cat(rows);
}

/// The maps (L, B, H, T, S) of the real queries and keys.
void expect_equal_maps(const std::vector<torch::Tensor>& ours, const torch::Tensor& theirs,
                       const torch::Tensor& n_queries, const torch::Tensor& n_keys, const std::string& what) {
  ASSERT_EQ(static_cast<int64_t>(ours.size()), theirs.size(0)) << what;
  for (int64_t layer = 0; layer < theirs.size(0); ++layer) {
    for (int64_t row = 0; row < theirs.size(1); ++row) {
      const auto real = [&](const torch::Tensor& maps) {
        return maps[row]
            .narrow(1, 0, n_queries[row].item<int64_t>())
            .narrow(2, 0, n_keys[row].item<int64_t>());
      };
      expect_close(real(ours[static_cast<size_t>(layer)]), real(theirs[layer]), what, kTolerance);
    }
  }
}

Batch batch_of(const SafetensorsFile& reference) {
  Batch batch;
  if (reference.contains("images")) {
    batch.fields.emplace(fields::kImages, reference.tensor("images"));
    batch.targets = torch::zeros({reference.shape("images").front()}, torch::kInt64);
    return batch;
  }
  if (reference.contains("spectrograms")) {
    batch.fields.emplace(fields::kSpectrograms, reference.tensor("spectrograms"));
    batch.decoder.ids = reference.tensor("target");
    return batch;
  }
  if (reference.contains("samples")) {
    batch.fields = {{fields::kSamples, reference.tensor("samples")},
                    {fields::kSampleCounts, reference.tensor("sample_counts")},
                    {fields::kTranscripts, reference.tensor("transcripts")}};
    return batch;
  }
  batch.input = {.ids = reference.tensor("ids"), .lengths = reference.tensor("lengths")};
  if (reference.contains("segments")) batch.segments = reference.tensor("segments");
  if (reference.contains("positions")) batch.positions = reference.tensor("positions");
  if (reference.contains("target")) batch.decoder.ids = reference.tensor("target");
  return batch;
}

TEST_P(ForeignModels, ComputeWhatTransformersComputes) {
  const torch::NoGradGuard no_grad;
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  auto& model = run.model();
  const auto batch = batch_of(reference);
  const auto lengths = reference.contains("moments") ? reference.tensor("moments")
                       : batch.input.defined()       ? batch.input.lengths
                                                     : torch::Tensor();
  const bool has_lengths = lengths.defined();
  const bool has_head = reference.contains("logits");
  const auto expected = has_head ? reference.tensor("logits") : torch::Tensor();
  const auto logits = model.logits(model.features(batch));
  const auto hidden = model.hidden_states(batch), expected_hidden = reference.tensor("hidden");
  if (!has_lengths) {
    expect_close(logits, expected, "logits", kTolerance);
    expect_close(hidden, expected_hidden, "hidden states", kTolerance);
  } else {
    expect_close(real_rows(hidden, lengths), real_rows(expected_hidden, lengths), "hidden states",
                 kTolerance);
    if (!has_head) {
      // Without a head there are no logits.
    } else if (expected.dim() == 2 || batch.decoder.ids.defined()) {
      expect_close(logits.view_as(expected), expected, "logits", kTolerance);
    } else {
      expect_close(real_rows(logits.view_as(expected), lengths), real_rows(expected, lengths), "logits",
                   kTolerance);
    }
  }
  if (reference.contains("left_logits")) {
    expect_close(real_rows(logits.view_as(expected), lengths),
                 real_rows(reference.tensor("left_logits"), lengths), "padded on the left", kTolerance);
  }
  if (!reference.contains("maps")) return;
  AttentionMaps maps;
  model.attention_maps(batch, maps);
  const bool decodes = maps.encoder.empty();
  const auto& own = decodes ? maps.decoder : maps.encoder;
  const auto theirs = reference.tensor("maps");
  const auto all = torch::full({theirs.size(1)}, theirs.size(3), torch::kInt64);
  const auto n_keys = has_lengths ? lengths : all;
  expect_equal_maps(own, theirs, n_keys, n_keys, "maps");
  if (!reference.contains("cross_maps")) return;
  const auto decoder_maps = reference.tensor("decoder_maps");
  const auto n_targets = torch::full({theirs.size(1)}, decoder_maps.size(3), torch::kInt64);
  expect_equal_maps(maps.decoder, decoder_maps, n_targets, n_targets, "decoder's maps");
  expect_equal_maps(maps.cross, reference.tensor("cross_maps"), n_targets, n_keys, "cross maps");
}

TEST_P(ForeignModels, PredictWhatTransformersPredicts) {
  const auto reference = this->reference();
  const auto run = Run::open(directory());
  if (reference.contains("boxes")) {
    const torch::NoGradGuard no_grad;
    const auto found = run.model().detecting()->detect(batch_of(reference));
    expect_close(found.boxes[-1], reference.tensor("boxes"), "boxes", kTolerance);
    expect_objects(run, reference);
  }
  if (!reference.contains("probabilities")) return;
  // SENTENCES of reference_interop.py.
  const std::vector<std::string> texts = {"The cat sat on it.", "a dog", "You don't know?"};
  const auto expected = reference.tensor("probabilities");
  const auto predictions = run.task().predict(run.model(), texts);
  const auto& labels = run.task().vocabulary().labels;
  ASSERT_EQ(std::ssize(predictions), expected.size(0));
  for (int64_t i = 0; i < expected.size(0); ++i) {
    for (const auto& [label, probability] : predictions[static_cast<size_t>(i)].labels()) {
      const auto number = std::ranges::find(labels, label) - labels.begin();
      EXPECT_NEAR(probability, expected[i][number].item<double>(), kTolerance)
          << texts[static_cast<size_t>(i)];
    }
  }
}

/// PROTEIN of reference_interop.py.
const std::string kProtein = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ";

TEST_P(ForeignModels, SeeTheContactsThatTransformersSees) {
  const auto reference = this->reference();
  if (!reference.contains("contacts")) return;
  const auto run = Run::open(directory());
  const auto ids =
      with_special_tokens(run.tokenizer(), run.tokenizer().encode(kProtein), TextLayout::cls_tokens_sep);
  EXPECT_TRUE(torch::tensor(ids, torch::kInt64).equal(reference.tensor("protein")[0]));
  const auto map = contact_map(run, kProtein);
  EXPECT_EQ(map.residues.size(), kProtein.size());
  expect_close(map.probabilities, reference.tensor("contacts").to(torch::kDouble), "contacts", kTolerance);
}

TEST_P(ForeignModels, HaveTheLossOfTransformers) {
  const auto reference = this->reference();
  if (!reference.contains("labels")) return;
  const auto run = Run::open(directory());
  const torch::NoGradGuard no_grad;
  auto batch = batch_of(reference);
  const auto labels = reference.tensor("labels").flatten();
  batch.positions = (labels != -100).nonzero().flatten();
  const auto logits = run.model().logits(run.model().features(batch));
  const auto loss = torch::nn::functional::cross_entropy(logits, labels.index_select(0, batch.positions));
  expect_close(loss, reference.tensor("loss"), "loss", kTolerance);
}

TEST_P(ForeignWriters, HaveTheLossAndTheGradientsOfTransformers) {
  const auto reference = this->reference();
  if (!reference.contains("targets")) return;
  const auto run = Run::open(directory());
  auto& model = run.model();
  for (auto& parameter : model.parameters()) parameter.requires_grad_(true);
  auto batch = batch_of(reference);
  batch.positions = reference.tensor("real");
  const auto loss =
      torch::nn::functional::cross_entropy(model.logits(model.features(batch)), reference.tensor("targets"));
  expect_close(loss.detach(), reference.tensor("loss_of_targets"), "loss", kTolerance);
  loss.backward();
  // The directory has the gradients in the place of the weights.
  const auto gradients = open_foreign(directory().parent_path() / "gradients" / GetParam().name).tensors;
  for (const auto& item : model.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    const auto expected = gradients->tensor(item.key());
    // Relative to the largest number, but where all are nearly 0, as those of biases of keys are.
    constexpr double smallest = 1e-2;
    const auto scale = expected.abs().max().clamp_min(smallest);
    expect_close(item.value().grad() / scale, expected / scale, "gradient of " + item.key(), kTolerance);
  }
}

TEST_P(ForeignModels, HaveTheGradientsOfTransformers) {
  const auto reference = this->reference();
  const bool is_ctc = reference.contains("ctc_loss");
  if (!reference.contains("upstream") && !is_ctc) return;
  const auto foreign = open_foreign(directory());
  const auto run = Run::open(directory());
  auto& model = run.model();
  const auto batch = batch_of(reference);
  if (is_ctc) {
    const auto loss = CtcObjective().loss(model, batch), expected = reference.tensor("ctc_loss");
    expect_close(loss.detach() / expected, torch::ones_like(expected), "loss", kTolerance);
    loss.backward();
  } else {
    const auto upstream = reference.tensor("upstream");
    const auto outputs =
        reference.contains("logits") ? model.logits(model.features(batch)) : model.hidden_states(batch);
    (outputs.view_as(upstream) * upstream).mean().backward();
  }
  const auto config = parse_json(foreign.task->vocabulary().foreign_files.at("config.json"));
  const auto mapping = tensor_mapping(*foreign.family, run.experiment(), foreign.task->purpose(), config);
  auto stored = file(GetParam().name);
  const auto gradients =
      mapping.imported(std::make_shared<SafetensorsFile>(stored.replace_extension(".gradients.safetensors")),
                       Compared::shapes);
  double largest = 1;  // norm of a gradient, beside which those that are zero but for rounding are small
  for (const auto& parameter : model.parameters())
    if (parameter.grad().defined()) largest = std::max(largest, parameter.grad().norm().item<double>());
  for (const auto& item : model.named_parameters()) {
    auto expected = torch::zeros_like(item.value());
    {
      const torch::NoGradGuard no_grad;
      gradients->read_into(expected, item.key());
    }
    const auto known = expected.isfinite();  // interop_encoders.py says of which transformers has none
    expected.nan_to_num_();
    const double size = expected.norm().item<double>();
    const auto& gradient = item.value().grad();
    const auto found = gradient.defined() ? gradient : torch::zeros_like(expected);
    EXPECT_LE(((found - expected) * known).norm().item<double>(), 1e-3 * size + 1e-6 * largest) << item.key();
  }
}

TEST_P(ForeignWriters, DecodeWithACacheAsWithout) {
  const torch::NoGradGuard no_grad;
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  auto* const model = run.model().generative();
  ASSERT_TRUE(model);
  const auto expected = reference.tensor("logits");
  const TokenBatch prompts{.ids = reference.tensor("ids"), .lengths = reference.tensor("lengths")};
  const bool answers = reference.contains("target");
  const auto read = answers ? reference.tensor("target") : prompts.ids;
  auto state = model->begin({.input = prompts});
  std::vector<torch::Tensor> columns;
  for (int64_t t = 0; t < read.size(1); ++t)
    columns.push_back(model->forward({.ids = read.narrow(1, t, 1)}, state, LogitsAt::last_token()));
  const auto logits = torch::stack(columns, 1);
  const auto n = answers ? torch::full({read.size(0)}, read.size(1), torch::kInt64) : prompts.lengths;
  expect_close(real_rows(logits, n), real_rows(expected, n), "token by token", kTolerance);
}

TEST_P(ForeignWriters, GenerateWhatTransformersGenerates) {
  const auto reference = this->reference();
  if (!reference.contains("greedy")) return;  // its table has rows that the tokenizer lacks
  const auto run = Run::open(directory());
  const Generator generator(run.model(), run.tokenizer());
  const auto ids_of = [](const torch::Tensor& row) {
    const auto flat = row.flatten().contiguous();
    return TokenIds(flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel());
  };
  auto prompt = ids_of(reference.tensor("prompt"));
  auto options = run.experiment().generation;
  options.max_new_tokens = 9;
  const auto outputs_with = [&](int64_t beams) {
    options.beam = beams;
    options.early_stopping = EarlyStopping::first_finished;
    return generator.generate(std::vector<TokenIds>{prompt}, options).front().outputs.front().ids;
  };
  EXPECT_EQ(outputs_with(1), ids_of(reference.tensor("greedy")));
  EXPECT_EQ(outputs_with(3), ids_of(reference.tensor("beams")));
}

TEST_P(ForeignWriters, ScoreTextsAsTransformersDoes) {
  const auto run = Run::open(directory());
  const auto reference = this->reference();
  const auto ids = reference.tensor("ids"), lengths = reference.tensor("lengths");
  const bool answers = reference.contains("target");
  const auto scored = answers ? reference.tensor("target") : ids;
  // Position t predicts token t + 1.
  const auto expected = reference.tensor("logits").log_softmax(2).narrow(1, 0, scored.size(1) - 1);
  std::vector<TokensToScore> texts;
  for (int64_t b = 0; b < ids.size(0); ++b) {
    const auto n = lengths[b].item<int64_t>();
    const auto list = [](const torch::Tensor& row) {
      const auto flat = row.contiguous();
      return TokenIds(flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel());
    };
    const auto ids_after_first = scored[b].narrow(0, 1, (answers ? scored.size(1) : n) - 1);
    texts.push_back({.prompt = list(ids[b].narrow(0, 0, answers ? n : 1)), .ids = list(ids_after_first)});
  }
  const auto found = token_logprobs(run.model(), texts);
  for (int64_t b = 0; b < ids.size(0); ++b) {
    const auto& text = texts[static_cast<size_t>(b)];
    if (text.ids.empty()) continue;
    const auto n = std::ssize(text.ids);
    const auto theirs =
        expected[b].narrow(0, 0, n).gather(1, torch::tensor(text.ids).unsqueeze(1)).squeeze(1);
    expect_close(torch::tensor(found[static_cast<size_t>(b)], torch::kFloat64), theirs, "logprobs",
                 kTolerance);
  }
}

/// Those that write what recordings say.
class ForeignListeners : public ForeignModels {};

TEST_P(ForeignListeners, TranscribeWhatTransformersTranscribes) {
  const auto reference = this->reference();
  const auto run = Run::open(directory());
  const Generator generator(run.model(), run.tokenizer());
  auto options = run.experiment().generation;
  options.max_new_tokens = 9;
  options.early_stopping = EarlyStopping::first_finished;
  Batch recordings;
  recordings.fields = {{fields::kSpectrograms, reference.tensor("spectrograms")}};
  for (const auto& [beams, name] : {std::pair(1, "greedy"), {3, "beams"}}) {
    options.beam = beams;
    const auto expected = reference.tensor(name);
    const auto found = generator.transcribe(recordings, options);
    ASSERT_EQ(std::ssize(found), expected.size(0));
    for (int64_t i = 0; i < expected.size(0); ++i) {
      const auto row = expected[i].masked_select(expected[i] >= 0).contiguous();
      const TokenIds ids(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel());
      EXPECT_EQ(found[static_cast<size_t>(i)].outputs.front().ids, ids) << name << " " << i;
    }
  }
}

/// Those that score the letters of each moment of a recording.
class ForeignAligners : public ForeignModels {};

TEST_P(ForeignAligners, WriteWhatTransformersWrites) {
  const auto run = Run::open(directory());
  std::vector<std::string> files, expected;
  std::ifstream texts(directory().replace_extension(".txt"));
  for (std::string text; std::getline(texts, text);) {
    files.push_back(directory().string() + "_" + std::to_string(files.size()) + ".wav");
    expected.push_back(text);
  }
  ASSERT_EQ(files.size(), 3U);
  // Together, and each alone.
  const auto together = run.task().predict(run.model(), files);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(together[i].transcript(), expected[i]) << files[i];
    EXPECT_EQ(run.task().predict(run.model(), {files[i]}).front().transcript(), expected[i]) << files[i];
  }
}

std::vector<std::string> numbered(const std::vector<std::pair<std::string, int>>& families) {
  std::vector<std::string> names;
  for (const auto& [family, n] : families) {
    for (int i = 0; i < n; ++i) names.push_back(family + "_" + std::to_string(i));
  }
  return names;
}

std::vector<std::string> writers() {
  return numbered({{"gpt2", 3},    {"llama", 7},       {"mistral", 2},    {"qwen2", 3},     {"qwen3", 3},
                   {"olmo2", 2},   {"olmoe", 2},       {"mixtral", 3},    {"qwen2_moe", 3}, {"qwen3_moe", 3},
                   {"gemma2", 2},  {"gemma3", 2},      {"gpt_neox", 3},   {"gptj", 2},      {"opt", 4},
                   {"bloom", 2},   {"mpt", 2},         {"falcon", 4},     {"phi", 2},       {"phi3", 3},
                   {"olmo", 2},    {"granite", 2},     {"starcoder2", 2}, {"smollm3", 3},   {"cohere", 2},
                   {"cohere2", 2}, {"glm", 2},         {"glm4", 2},       {"t5", 3},        {"bart", 3},
                   {"marian", 3},  {"mt5", 2},         {"mbart", 2},      {"m2m_100", 2},   {"pegasus", 3},
                   {"gpt_oss", 3}, {"deepseek_v2", 3}, {"deepseek_v3", 3}});
}

/// `version`: some families are in the newest one alone.
std::vector<std::string> cases(Transformers version) {
  auto names = writers();
  if (version == Transformers::newest) {
    const auto newest = numbered({{"nomic_bert", 4}});
    names.insert(names.end(), newest.begin(), newest.end());
  }
  const auto others = numbered({{"bert", 4},        {"roberta", 2},        {"distilbert", 3},
                                {"bert_tokens", 2}, {"roberta_tokens", 1}, {"distilbert_tokens", 1},
                                {"llama_texts", 1}, {"mistral_texts", 1},  {"qwen2_texts", 1},
                                {"qwen3_texts", 1}, {"gpt2_texts", 1},     {"bart_texts", 1},
                                {"big_bird", 4},    {"longformer", 3},     {"esm", 5},
                                {"vit", 2},         {"ijepa", 2},          {"deit", 2},
                                {"dinov2", 2},      {"detr", 3},           {"whisper", 2},
                                {"xlm_roberta", 4}, {"albert", 4},         {"electra", 4},
                                {"mpnet", 4},       {"modernbert", 4},     {"deberta", 5},
                                {"wav2vec2", 3},    {"hubert", 4},         {"beit", 3}});
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

/// Those from which something is left out on the way back are only opened.
std::vector<std::string> opened(Transformers version) {
  auto names = cases(version);
  const auto others = numbered({{"marian_stored", 1},
                                {"big_bird_stored", 1},
                                {"bert_published", 2},
                                {"esm_published", 1},
                                {"bart_published", 1},
                                {"t5_published", 1},
                                {"ijepa_published", 1},
                                {"dinov2_published", 1},
                                {"qwen2_published", 1},
                                {"wav2vec2_published", 1},
                                {"beit_published", 1},
                                {"pegasus_published", 1},
                                {"electra_published", 1}});
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

template <class Names>
std::vector<Case> of_both_versions(const Names& names_of) {
  std::vector<Case> result;
  for (const auto version : {Transformers::newest, Transformers::of_version_4}) {
    for (const auto& name : names_of(version)) result.push_back({version, name});
  }
  return result;
}

/// The same names in each version.
auto always(std::vector<std::string> names) {
  return [names = std::move(names)](Transformers) { return names; };
}

const auto name_of_case = [](const auto& test) {
  return test.param.name + (test.param.version == Transformers::newest ? "" : "_of_version_4");
};

INSTANTIATE_TEST_SUITE_P(Of, ForeignModels, ::testing::ValuesIn(of_both_versions(opened)), name_of_case);
INSTANTIATE_TEST_SUITE_P(Of, ForeignListeners,
                         ::testing::ValuesIn(of_both_versions(always(numbered({{"whisper", 2}})))),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Of, ForeignAligners,
                         ::testing::ValuesIn(of_both_versions(
                             always(numbered({{"wav2vec2", 3}, {"hubert", 4}, {"wav2vec2_published", 1}})))),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Of, ForeignWriters, ::testing::ValuesIn(of_both_versions(always(writers()))),
                         name_of_case);

class PackedDirectories : public ReferenceTest, public ::testing::WithParamInterface<Case> {
 protected:
  PackedDirectories() : ReferenceTest("reference_interop.py", GetParam().version) {}
};

// To the bit, also after an import and an export, whose config.json no longer says that they are packed.
TEST_P(PackedDirectories, HaveTheWeightsThatTransformersUnpacks) {
  const auto folder = file("gpt2_0").parent_path();
  const auto plain = open_foreign(folder / (GetParam().name + "_plain")).tensors;
  const TempDir dir;
  import_run(folder / GetParam().name, dir.path() / "run");
  export_run(dir.path() / "run", dir.path() / "export");
  for (const auto& place : {folder / GetParam().name, dir.path() / "export"}) {
    const auto tensors = open_foreign(place).tensors;
    EXPECT_EQ(tensors->names(), plain->names());
    for (const auto& name : plain->names()) {
      EXPECT_EQ(tensors->dtype(name), torch::kBFloat16) << name;
      EXPECT_TRUE(tensors->tensor(name).view(torch::kInt16).equal(plain->tensor(name).view(torch::kInt16)))
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, PackedDirectories,
    ::testing::ValuesIn(of_both_versions(always({"gpt_oss_packed", "deepseek_v3_packed"}))), name_of_case);

class ForeignExports : public ReferenceTest {
 protected:
  explicit ForeignExports(Transformers version = Transformers::newest)
      : ReferenceTest("reference_interop.py", version) {}
};

class ExportsOfVersion : public ForeignExports, public ::testing::WithParamInterface<Transformers> {
 protected:
  ExportsOfVersion() : ForeignExports(GetParam()) {}
};

/// Runs check_exports.py; returns what it prints.
std::string checked(const std::filesystem::path& originals, const std::filesystem::path& exports,
                    const std::filesystem::path& log, Transformers version) {
  const auto folder = std::filesystem::absolute(__FILE__).parent_path();
  const std::string command = environment_of(version) + "'" + reference_python() + "' '" +
                              (folder / "check_exports.py").string() + "' '" + originals.string() + "' '" +
                              exports.string() + "' >'" + log.string() + "' 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  return text.str();
}

TEST_P(ExportsOfVersion, GiveBackWhatWasImported) {
  const TempDir dir;
  const auto originals = file("gpt2_0").parent_path();
  auto names = cases(GetParam());
  const auto pairs = numbered({{"clip", 3}, {"siglip", 3}});  // pairs_parity_test.cpp
  names.insert(names.end(), pairs.begin(), pairs.end());
  for (const auto& name : names) {
    import_run(originals / name, dir.path() / "runs" / name);
    export_run(dir.path() / "runs" / name, dir.path() / "exports" / name);
  }
  EXPECT_EQ(checked(originals, dir.path() / "exports", dir.path() / "log.txt", GetParam()),
            "{}\n" + std::to_string(names.size()) + " directories\n");
}

INSTANTIATE_TEST_SUITE_P(Of, ExportsOfVersion,
                         ::testing::Values(Transformers::newest, Transformers::of_version_4),
                         [](const auto& test) {
                           return test.param == Transformers::newest ? "newest" : "version_4";
                         });

TEST_F(ForeignExports, MakeTheVectorsOfSentenceTransformers) {
  constexpr int n_cases = 10;
  const TempDir dir;
  const auto originals = file("gpt2_0").parent_path();
  // SENTENCES of reference_interop.py.
  const std::vector<std::string> texts = {"The cat sat on it.", "a dog", "You don't know?"};
  for (int i = 0; i < n_cases; ++i) {
    const auto name = "sentence_" + std::to_string(i);
    import_run(originals / name, dir.path() / "runs" / name);
    export_run(dir.path() / "runs" / name, dir.path() / "exports" / name);
    const auto expected = SafetensorsFile(originals / (name + ".safetensors")).tensor("vectors");
    for (const auto& place : {originals, dir.path() / "runs", dir.path() / "exports"}) {
      SCOPED_TRACE((place / name).string());
      const auto run = Run::open(place / name);
      const auto options = embed_options(run);
      EXPECT_EQ(options.max_length, 32);
      expect_close(embed(run.model(), run.tokenizer(), texts, options).vectors, expected, "vectors",
                   kTolerance);
    }
  }
}

/// Trains two steps of `task` from a foreign directory; returns what the training says first.
std::string started_from(const std::filesystem::path& directory, const std::string& task,
                         const TempDir& dir) {
  std::string table = "sentence\tlabel\n", text;
  for (int i = 0; i < 12; ++i) {
    table += "the cat sat on the mat " + std::to_string(i) + "\t" + (i % 2 == 0 ? "dull" : "fine") + "\n";
    text += "the cat sat on the mat, and the dog ran after the cat " + std::to_string(i) + "\n";
  }
  const auto data =
      task == "text_classification" ? dir.write("table.tsv", table) : dir.write("text.txt", text);
  const auto experiment =
      parse_experiment("task: " + task + "\ninit_from: " + directory.string() +
                           "\ndata: {train: " + data.string() + ", valid: " + data.string() +
                           ", sequence_length: 12}\ntraining: {steps: 2, batch_size: 4, evaluate_every: 2}\n",
                       "test");
  std::string said;
  TrainOptions options;
  options.run_dir = dir.path() / "run";
  options.on_progress = [&](const TrainProgress& progress) { said += progress.message + "\n"; };
  train(experiment, options);
  Run::open(options.run_dir);
  return said;
}

// The vocabulary of an encoder has no end token, and that of a decoder no tokens around a text.
TEST_F(ForeignExports, AreStartingPointsOfTrainings) {
  const auto model = [&](const std::string& name) { return file(name).replace_extension(); };
  {
    const TempDir dir;
    EXPECT_THAT(started_from(model("bert_3"), "text_classification", dir), HasSubstr("new: head.classifier"));
  }
  {
    const TempDir dir;
    EXPECT_THAT(started_from(model("bert_0"), "masked_language_modeling", dir), HasSubstr("starts from"));
  }
  {
    const TempDir dir;
    EXPECT_THAT(started_from(model("llama_1"), "language_modeling", dir), HasSubstr("starts from"));
    // What was trained here is opened by transformers: its family is that of the origin.
    EXPECT_EQ(export_run(dir.path() / "run", dir.path() / "export"), "llama");
  }
}

}  // namespace
}  // namespace zoo::testing
