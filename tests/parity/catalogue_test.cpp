// The named architectures of configs/models have the parameter counts that their papers and model cards
// publish.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "models/families/model_cost.h"
#include "tasks/experiment.h"

namespace zoo {
namespace {

ModelConfig model_of(const std::string& name) {
  const auto folder = std::filesystem::absolute(__FILE__).parent_path() / "../../configs/models";
  Experiment experiment;
  ConfigFile::load((folder / (name + ".yaml")).lexically_normal()).read(experiment);
  return experiment.model;
}

int64_t parameters(const std::string& name, const ModelPurpose& purpose) {
  return model_cost(model_of(name), purpose, /*length=*/128).parameters;
}

TEST(Catalogue, Decoders) {
  const ModelPurpose purpose{.head = HeadKind::language_modeling};
  EXPECT_EQ(parameters("gpt2", purpose), 124'439'808);
  EXPECT_EQ(parameters("llama2-7b", purpose), 6'738'415'616);
  EXPECT_EQ(parameters("llama3-8b", purpose), 8'030'261'248);
  EXPECT_EQ(parameters("qwen2-0.5b", purpose), 494'032'768);
  EXPECT_EQ(parameters("qwen3-0.6b", purpose), 596'049'920);
  EXPECT_EQ(parameters("mistral-7b", purpose), 7'241'732'096);
  EXPECT_EQ(parameters("gemma3-1b", purpose), 999'885'952);
}

TEST(Catalogue, MixturesOfExperts) {
  const ModelPurpose purpose{.head = HeadKind::language_modeling};
  EXPECT_EQ(parameters("mixtral-8x7b", purpose), 46'702'792'704);
  EXPECT_EQ(parameters("qwen1.5-moe-a2.7b", purpose), 14'315'784'192);
  EXPECT_EQ(parameters("qwen3-30b-a3b", purpose), 30'532'122'624);
  EXPECT_EQ(parameters("gpt-oss-20b", purpose), 20'914'757'184);
  EXPECT_EQ(parameters("deepseek-v2-lite", purpose), 15'706'484'224);
  EXPECT_EQ(parameters("deepseek-v3", purpose), 671'026'404'352);
  // The paper says 13 billion, and Qwen's card 3.3.
  EXPECT_EQ(model_cost(model_of("mixtral-8x7b"), purpose, 128).active_parameters, 12'879'925'248);
  EXPECT_EQ(model_cost(model_of("qwen3-30b-a3b"), purpose, 128).active_parameters, 3'353'032'704);
}

TEST(Catalogue, Encoders) {
  const ModelPurpose fill{.head = HeadKind::masked_language_modeling};
  EXPECT_EQ(parameters("bert-base", fill), 109'514'298);
  EXPECT_EQ(parameters("roberta-base", fill), 124'697'433);
  // The bare model with its pooler, without the two-class matrix.
  const ModelPurpose classify{.head = HeadKind::classification, .n_classes = 2};
  EXPECT_EQ(parameters("bert-base", classify) - (2 * 768 + 2), 109'482'240);
  EXPECT_EQ(parameters("longformer-base", classify) - (2 * 768 + 2), 148'659'456);
  EXPECT_EQ(parameters("bigbird-base", classify) - (2 * 768 + 2), 127'468'800);
}

TEST(Catalogue, EncoderDecoders) {
  const ModelPurpose purpose{.head = HeadKind::language_modeling, .start_token = 0};
  EXPECT_EQ(parameters("t5-small", purpose), 60'506'624);
  EXPECT_EQ(parameters("t5-v1.1-small", purpose), 76'961'152);
  // torch.nn.Transformer(512, 8, 6, 6, 2048) without its two final norms, and one table of 37000 rows.
  EXPECT_EQ(parameters("transformer-base", purpose), 44'140'544 - 2 * 1024 + 37000 * 512);
  EXPECT_EQ(parameters("transformer-base-pre-norm", purpose), 44'140'544 + 37000 * 512);
}

// With 91 classes. The authors' program prints 41,302,368, which leaves out what it does not train: the first
// convolution and those of the first stage.
TEST(Catalogue, Detr) {
  const ModelPurpose purpose{
      .head = HeadKind::detection, .n_classes = 91, .image = {.channels = 3, .height = 800, .width = 800}};
  const int64_t first_convolution = 7 * 7 * 3 * 64, first_stage = 73'728 + 2 * 69'632;
  EXPECT_EQ(parameters("detr-r50", purpose), 41'302'368 + first_convolution + first_stage);
}

// Without the encoder's table of sinusoids, which is not trained.
TEST(Catalogue, Recordings) {
  const ModelPurpose purpose{.head = HeadKind::language_modeling, .start_token = 0};
  EXPECT_EQ(parameters("whisper-tiny", purpose), 37'760'640 - 1500 * 384);
  EXPECT_EQ(parameters("whisper-base", purpose), 72'593'920 - 1500 * 512);
  EXPECT_EQ(parameters("whisper-small", purpose), 241'734'912 - 1500 * 768);
}

// As in timm, with 1,000 classes.
TEST(Catalogue, VisionTransformers) {
  const ModelPurpose purpose{.head = HeadKind::classification, .n_classes = 1000};
  EXPECT_EQ(parameters("vit-ti16", purpose), 5'717'416);
  EXPECT_EQ(parameters("vit-s16", purpose), 22'050'664);
  EXPECT_EQ(parameters("vit-b16", purpose), 86'567'656);
  EXPECT_EQ(parameters("vit-l16", purpose), 304'326'632);
}

// As in timm, with 1,000 classes.
TEST(Catalogue, Mixers) {
  const ModelPurpose purpose{.head = HeadKind::classification, .n_classes = 1000};
  EXPECT_EQ(parameters("mixer-b16", purpose), 59'880'472);
}

// As in torchvision, with 1,000 classes.
TEST(Catalogue, ResidualNetworks) {
  const ModelPurpose purpose{.head = HeadKind::classification,
                             .n_classes = 1000,
                             .image = {.channels = 3, .height = 224, .width = 224}};
  EXPECT_EQ(parameters("resnet-18", purpose), 11'689'512);
  EXPECT_EQ(parameters("resnet-34", purpose), 21'797'672);
  EXPECT_EQ(parameters("resnet-50", purpose), 25'557'032);
}

}  // namespace
}  // namespace zoo
