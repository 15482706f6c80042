// Published models as their files describe themselves: config.json alone gives a model that has a place for
// every tensor of the file, in its shape, and needs no other. No weights are read or made.
//
// A file of tests/published has the facts of one model: its config.json and where it was seen, and groups of
// names of tensors with their shapes. {} in a name stands for 0 … layers - 1, or from first_layer on, and []
// for 0 … experts - 1. "type" is given where the weights are packed. A group says where its names were seen,
// or that they follow from config.json; the same for the shapes. "refused" is a part of the message of a
// model that must not be opened. "opened_as" is the class that is tried after that of config.json, because
// the directory has the modules.json of sentence-transformers.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/foreign_choice.h"
#include "interop/foreign_generation.h"
#include "interop/foreign_model.h"
#include "io/files.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/wave_encoder.h"
#include "tasks/images/image_task.h"
#include "tests/support/errors.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

/// Names and shapes of tensors that are nowhere.
class PublishedTensors final : public TensorSource {
 public:
  /// `groups`: "tensors" of a file of tests/published.
  explicit PublishedTensors(const Json& groups) {
    for (const auto& group : groups) {
      for (const auto& [pattern, shape] : group.at("names").items()) {
        for (const auto& of_layer : with_numbers(pattern, "{}", group, "layers"))
          for (const auto& name : with_numbers(of_layer, "[]", group, "experts"))
            add(name, shape.get<std::vector<int64_t>>(), group.value("type", "F32"));
      }
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, shape] : shapes_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const override { return shapes_.contains(name); }
  std::vector<int64_t> shape(const std::string& name) const override { return shapes_.at(name); }
  torch::ScalarType dtype(const std::string& name) const override {
    const auto found = packed_.find(name);
    return found == packed_.end() ? torch::kFloat : found->second;
  }
  void read_into(const torch::Tensor&, const std::string& name) const override {
    throw Error(fmt::format("the data of '{}' were read", name));
  }
  std::string place() const override { return "published"; }

 private:
  /// The pattern with each number from the first on in the place of `mark`, as many as `count` says; the
  /// pattern alone if it has no mark.
  static std::vector<std::string> with_numbers(const std::string& pattern, std::string_view mark,
                                               const Json& group, const char* count) {
    const auto at = pattern.find(mark);
    if (at == pattern.npos) return {pattern};
    std::vector<std::string> names;
    const int64_t first = mark == "{}" ? group.value("first_layer", int64_t{0}) : 0;
    for (int64_t i = first; i < group.at(count).get<int64_t>(); ++i)
      names.push_back(std::string(pattern).replace(at, mark.size(), std::to_string(i)));
    return names;
  }

  void add(const std::string& name, const std::vector<int64_t>& shape, const std::string& type) {
    if (type != "F32") packed_.emplace(name, type == "U8" ? torch::kUInt8 : torch::kFloat8_e4m3fn);
    if (!shapes_.emplace(name, shape).second) throw Error(fmt::format("'{}' is listed twice", name));
  }

  TensorShapes shapes_;
  std::map<std::string, torch::ScalarType> packed_;
};

std::vector<fs::path> published_files() {
  std::vector<fs::path> result;
  for (const auto& entry :
       fs::directory_iterator(fs::path(__FILE__).parent_path().parent_path() / "published"))
    result.push_back(entry.path());
  std::ranges::sort(result);
  return result;
}

/// What the model is for, with a tokenizer of the size that config.json gives.
ModelPurpose purpose_of(const ForeignDescription& described) {
  const auto& experiment = described.experiment;
  const auto& task = experiment.task.type;
  const int64_t vocab_size = experiment.model.vocab_size.value_or(0), n_labels = std::ssize(described.labels);
  if (task == "image_classification") return image_purpose(experiment, HeadKind::classification, n_labels);
  if (task == "object_detection") return image_purpose(experiment, HeadKind::detection, n_labels);
  const auto& type = task_type(experiment);
  auto purpose =
      (type.purpose ? type.purpose(experiment, vocab_size) : std::nullopt).value_or(ModelPurpose());
  purpose.vocab_size = vocab_size;
  if (purpose.head != HeadKind::ctc) purpose.n_classes = type.needs_labels() ? n_labels : 0;
  if (task == "text_classification") purpose.head = HeadKind::classification;
  if (task == "token_classification") purpose.head = HeadKind::token_classification;
  purpose.start_token = std::max<int64_t>(purpose.start_token, 0);
  return purpose;
}

/// What opening a model with these facts says.
std::string problem_of(const Json& facts) {
  return message_of<CheckpointError>([&] {
    auto json = facts.at("config");
    if (facts.contains("opened_as")) json["architectures"] = Json::array({facts.at("opened_as")});
    ForeignConfig config("config.json", std::move(json));
    const auto generation = read_generation({}, {}, config);
    auto described = describe_foreign(std::move(config), generation, "published");
    const auto purpose = purpose_of(described);
    const auto tensors = unpacked(std::make_shared<PublishedTensors>(facts.at("tensors")), described.packed);
    const auto mapping = [&] {
      return tensor_mapping(*described.family, described.experiment, purpose, described.config);
    };
    follow_tensors(mapping(), tensors, purpose, described.experiment.model, Compared::shapes);
    mapping().imported(tensors, Compared::shapes);
  });
}

class Published : public ::testing::TestWithParam<fs::path> {};

TEST_P(Published, IsRead) {
  const auto facts = Json::parse(read_file(GetParam()));
  EXPECT_EQ(facts.at("config").value("model_type", facts.at("family")), facts.at("family"));
  if (facts.contains("refused")) {
    EXPECT_THAT(problem_of(facts), HasSubstr(facts.at("refused").get<std::string>()));
  } else {
    EXPECT_EQ(problem_of(facts), "no error");
  }
}

/// What a config.json says.
Experiment experiment_of(const Json& config) {
  ForeignConfig read("config.json", config);
  const auto generation = read_generation({}, {}, read);
  return describe_foreign(std::move(read), generation, "published").experiment;
}

// A run of this model that was trained here, and so has no config.json, gets one that says the same.
TEST_P(Published, IsWritten) {
  const auto facts = Json::parse(read_file(GetParam()));
  const auto& config = facts.at("config");
  if (facts.contains("refused") || !config.contains("architectures")) return;
  const auto read = experiment_of(config);
  if (!read.model.vocab_size) return;  // of pictures
  Json written = {{"model_type", facts.at("family")},
                  {"architectures", config.at("architectures")},
                  {"vocab_size", read.model.vocab_size.value()},
                  {"tie_word_embeddings", read.model.tie_embeddings}};
  find_foreign_family(facts.at("family").get<std::string>())->write(read, written);
  for (const auto& difference : model_differences(read, experiment_of(written), HeadKind::language_modeling))
    ADD_FAILURE() << difference.key << ": " << difference.wanted << ", written " << difference.expressed;
}

// NomicBERT, of which no whole file was found in public repositories: newer ones have the keys of the
// authors' program, class NomicBertConfig of nomic-ai/contrastors, beside those of transformers.
TEST(PublishedModels, OfNomicMayKeepTheKeysOfTheirAuthors) {
  const Json config = {{"model_type", "nomic_bert"},
                       {"architectures", {"NomicBertModel"}},
                       {"hidden_size", 768},
                       {"num_hidden_layers", 12},
                       {"intermediate_size", 3072},
                       {"max_position_embeddings", 2048},
                       {"rope_parameters", {{"rope_theta", 1000.0}, {"rope_type", "default"}}}};
  const Json authors = {{"n_embd", 768},
                        {"n_layer", 12},
                        {"n_head", 12},
                        {"n_inner", 3072},
                        {"n_positions", 8192},
                        {"max_trained_positions", 2048},
                        {"rotary_scaling_factor", nullptr},
                        {"layer_norm_epsilon", 1e-12},
                        {"activation_function", "swiglu"},
                        {"rotary_emb_base", 1000},
                        {"rotary_emb_fraction", 1.0},
                        {"rotary_emb_interleaved", false},
                        {"rotary_emb_scale_base", nullptr},
                        {"prenorm", false},
                        {"parallel_block", false},
                        {"causal", false},
                        {"qkv_proj_bias", false},
                        {"mlp_fc1_bias", false},
                        {"mlp_fc2_bias", false},
                        {"use_rms_norm", false},
                        {"use_flash_attn", true},
                        {"fused_bias_fc", true},
                        {"fused_dropout_add_ln", true},
                        {"dense_seq_output", true},
                        {"use_xentropy", true},
                        {"pad_vocab_size_multiple", 64},
                        {"summary_type", "cls_index"}};
  const auto with = [&](const Json& more) {
    auto both = config;
    both.update(more);
    return both;
  };
  EXPECT_TRUE(model_differences(experiment_of(config), experiment_of(with(authors)), HeadKind::none).empty());
  const Json others = {{"n_layer", 6}, {"prenorm", true}, {"rotary_emb_base", 10000}, {"mlp_fc2_bias", true}};
  for (const auto& [key, value] : others.items()) {
    auto changed = authors;
    changed[key] = value;
    EXPECT_THAT(message_of<CheckpointError>([&] { experiment_of(with(changed)); }), HasSubstr(key));
  }
}

// SigLIP with other sizes than the usual ones.
TEST(PublishedModels, OfPicturesAndTextsAreWritten) {
  const Json text = {{"vocab_size", 90},
                     {"hidden_size", 12},
                     {"num_attention_heads", 3},
                     {"hidden_act", "gelu"},
                     {"max_position_embeddings", 15},
                     {"projection_size", 10},
                     {"layer_norm_eps", 1e-3}};
  const Json picture = {{"hidden_size", 10},       {"num_attention_heads", 2}, {"image_size", 23},
                        {"patch_size", 7},         {"num_channels", 1},        {"num_hidden_layers", 3},
                        {"intermediate_size", 11}, {"attention_dropout", 0.1}};
  const auto read =
      experiment_of({{"model_type", "siglip"}, {"text_config", text}, {"vision_config", picture}});
  Json written = {{"model_type", "siglip"}, {"vocab_size", 90}};
  find_foreign_family("siglip")->write(read, written);
  EXPECT_TRUE(model_differences(read, experiment_of(written), HeadKind::none).empty());
  const auto& dual = read.model.architecture.as<DualEncoderConfig>();
  EXPECT_EQ(dual.width, 10);
  EXPECT_EQ(dual.image.patches.patch_size, 7);
  EXPECT_EQ(read.data.images.channels, 1);
}

INSTANTIATE_TEST_SUITE_P(Models, Published, ::testing::ValuesIn(published_files()), [](const auto& model) {
  auto name = model.param.stem().string();
  std::ranges::replace_if(name, [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
});

/// The configuration of texts of CLIP's file with these keys.
DualEncoderConfig clip_with(const Json& more) {
  Json config = {{"model_type", "clip"}, {"projection_dim", 6}};
  config.update(more);
  return experiment_of(config).model.architecture.as<DualEncoderConfig>();
}

// The first files of CLIP name an end token that is none: the highest id stands for the text.
TEST(PublishedModels, TextsOfClipEndAsTheirFilesSay) {
  const auto first = clip_with({{"text_config", {{"eos_token_id", 2}}}});
  EXPECT_EQ(first.text_pooling, TextPooling::highest);
  EXPECT_FALSE(first.end_token);
  const auto later = clip_with({{"text_config", {{"eos_token_id", 300}}}});
  EXPECT_EQ(later.text_pooling, TextPooling::end);
  EXPECT_EQ(later.end_token, 300);
  EXPECT_EQ(clip_with(Json::object()).end_token, 49407);
  const auto both =
      clip_with({{"text_config", {{"eos_token_id", 2}}}, {"text_config_dict", {{"eos_token_id", 7}}}});
  EXPECT_EQ(both.end_token, 7) << "text_config_dict counts alone";
}

TEST(PublishedModels, MasksOfRecordingsHaveTheUsualValues) {
  const auto masks_of = [](const Json& more) {
    Json config = {{"model_type", "wav2vec2"}, {"vocab_size", 20}};
    config.update(more);
    return experiment_of(config).model.architecture.as<WaveEncoderConfig>().masks;
  };
  const auto usual = masks_of(Json::object());
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->least_time_masks, 2);
  EXPECT_EQ(usual->least_feature_masks, 0);
  EXPECT_DOUBLE_EQ(usual->time_share, 0.05);
  EXPECT_FALSE(masks_of({{"mask_time_prob", 0.0}}));
}

TEST(PublishedModels, AreOfAllFamilies) {
  std::map<std::string, int> models;
  int all = 0;
  for (const auto& file : published_files()) {
    ++models[Json::parse(read_file(file)).at("family").get<std::string>()];
    ++all;
  }
  // Of these families fewer files were found in public repositories.
  const std::map<std::string, int> found = {
      {"ijepa", 0},   {"qwen2_moe", 2}, {"gptj", 1},        {"bloom", 1},       {"mpt", 1},
      {"olmo", 2},    {"granite", 2},   {"smollm3", 1},     {"starcoder2", 1},  {"cohere", 1},
      {"cohere2", 0}, {"glm", 0},       {"glm4", 0},        {"mt5", 0},         {"modernbert", 2},
      {"mbart", 2},   {"mpnet", 2},     {"deepseek_v2", 1}, {"deepseek_v3", 2}, {"nomic_bert", 0},
      {"deit", 0},    {"siglip", 1},    {"hubert", 2},      {"beit", 1}};
  for (const auto& family : foreign_families()) {
    const auto fewer = found.find(family.model_type);
    EXPECT_GE(models[family.model_type], fewer == found.end() ? 3 : fewer->second) << family.model_type;
  }
  EXPECT_GE(all, 60);
}

// A fact that does not hold is seen.
TEST(PublishedModels, WithAnotherTensorAreRefused) {
  auto facts = Json::parse(read_file(published_files().front()));
  for (const auto& file : published_files()) {
    facts = Json::parse(read_file(file));
    if (!facts.contains("refused")) break;
  }
  auto& names = facts["tensors"][0]["names"];
  const auto shape = names.begin().value();
  const std::string name = names.begin().key();
  names[name] = {1, 2, 3};
  EXPECT_THAT(problem_of(facts), HasSubstr("is (1, 2, 3)"));
  names.erase(name);
  EXPECT_THAT(problem_of(facts), HasSubstr("it has no tensor"));
  names[name] = shape;
  names["another.weight"] = {2};
  EXPECT_THAT(problem_of(facts), HasSubstr("its tensor 'another.weight' is not in the model"));
}

}  // namespace
}  // namespace zoo::testing
