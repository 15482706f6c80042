// Directories in Hugging Face's form that are damaged, unusual, or meant to do harm: one line each.

#include "interop/foreign_files.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "checkpoints/import_run.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "interop/foreign_model.h"
#include "interop/gguf/gguf_config.h"
#include "io/files.h"
#include "io/formats/gguf_keys.h"
#include "io/safetensors.h"
#include "tasks/task_type.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// A Llama with one layer and five tokens.
class TinyLlama {
 public:
  TinyLlama() {
    config_ = {{"architectures", {"LlamaForCausalLM"}},
               {"model_type", "llama"},
               {"vocab_size", 5},
               {"hidden_size", 4},
               {"intermediate_size", 6},
               {"num_hidden_layers", 1},
               {"num_attention_heads", 2},
               {"max_position_embeddings", 8},
               {"rms_norm_eps", 1e-5},
               {"tie_word_embeddings", true},
               {"eos_token_id", 4}};
    torch::manual_seed(1);
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      tensors_.emplace(name, torch::randn(shape));
    };
    add("model.embed_tokens.weight", {5, 4});
    add("model.norm.weight", {4});
    const std::string layer = "model.layers.0.";
    for (const std::string part : {"q", "k", "v", "o"})
      add(layer + "self_attn." + part + "_proj.weight", {4, 4});
    add(layer + "mlp.gate_proj.weight", {6, 4});
    add(layer + "mlp.up_proj.weight", {6, 4});
    add(layer + "mlp.down_proj.weight", {4, 6});
    add(layer + "input_layernorm.weight", {4});
    add(layer + "post_attention_layernorm.weight", {4});
    write("tokenizer.json",
          R"({"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "<end>": 4}, "merges": ["a b"]}})");
    save();
  }

  void save() const {
    write("config.json", config_.dump());
    save_safetensors(path() / "model.safetensors", tensors_);
  }
  void write(const std::string& name, const std::string& content) const {
    dir_.write("tiny/" + name, content);
  }
  /// Divides the tensors into two files with an index.
  void shard() const {
    TensorMap first, second;
    Json map = Json::object();
    for (const auto& [name, tensor] : tensors_) {
      auto& part = first.size() <= second.size() ? first : second;
      part.emplace(name, tensor);
      map[name] = &part == &first ? "one.safetensors" : "two.safetensors";
    }
    save_safetensors(path() / "one.safetensors", first);
    save_safetensors(path() / "two.safetensors", second);
    write("model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    fs::remove(path() / "model.safetensors");
  }
  fs::path path() const { return dir_ / "tiny"; }
  fs::path beside(const std::string& name) const { return dir_ / name; }
  Json& config() { return config_; }
  TensorMap& tensors() { return tensors_; }
  /// What opening says.
  std::string problem() const {
    return message_of<CheckpointError>([&] { Run::open(path()); });
  }
  std::string problem_with(const std::function<void(TinyLlama&)>& change) {
    change(*this);
    save();
    return problem();
  }

 private:
  TempDir dir_;
  Json config_;
  TensorMap tensors_;
};

TEST(ForeignDirectory, IsOpenedAsItIsAndInParts) {
  TinyLlama tiny;
  const auto whole = Run::open(tiny.path());
  tiny.shard();
  const auto sharded = Run::open(tiny.path());
  Batch batch;
  batch.input.ids = torch::tensor({{0, 3, 2}});
  EXPECT_TRUE(whole.model().hidden_states(batch).equal(sharded.model().hidden_states(batch)));
  EXPECT_EQ(whole.experiment().name, "tiny");
  EXPECT_TRUE(is_stored_model(tiny.path()));
  EXPECT_FALSE(is_stored_model(tiny.beside("nothing")));
}

TEST(ForeignDirectory, OfHalfPrecisionIsConverted) {
  TinyLlama tiny;
  for (auto& [name, tensor] : tiny.tensors()) tensor = tensor.to(torch::kBFloat16);
  tiny.tensors().at("model.norm.weight") = tiny.tensors().at("model.norm.weight").to(torch::kHalf);
  tiny.save();
  const auto run = Run::open(tiny.path());
  const auto parameters = run.model().named_parameters();
  EXPECT_TRUE(parameters["token_embedding.weight"].equal(
      tiny.tensors().at("model.embed_tokens.weight").to(torch::kFloat)));
  EXPECT_TRUE(parameters["decoder.final_norm.weight"].equal(
      tiny.tensors().at("model.norm.weight").to(torch::kFloat)));
}

TEST(ForeignConfigKeys, ThatMightMatterAreNamed) {
  const auto problem_of = [](const std::string& key, const Json& value) {
    TinyLlama tiny;
    return tiny.problem_with([&](TinyLlama& model) { model.config()[key] = value; });
  };
  EXPECT_THAT(problem_of("sparse_attention", 3),
              HasSubstr("config.json: sparse_attention is 3: this key is not known, and might change"));
  EXPECT_EQ(problem_of("sparse_attention", nullptr), "no error");
  EXPECT_EQ(problem_of("transformers_version", "5.0"), "no error");
  EXPECT_THAT(problem_of("rope_interleaved", true), HasSubstr("only false is supported"));
  EXPECT_EQ(problem_of("rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}), "no error");
  EXPECT_THAT(problem_of("rope_scaling", {{"rope_type", "proportional"}, {"factor", 2.0}}),
              HasSubstr("only default, linear, dynamic, llama3, yarn and longrope are supported"));
  EXPECT_THAT(problem_of("rope_parameters", {{"rope_type", "default"}, {"base", 2.0}}),
              HasSubstr("rope_parameters: base is 2.0: this key is not known"));
  EXPECT_THAT(problem_of("hidden_act", "mish"), HasSubstr("this activation is not known"));
  EXPECT_THAT(problem_of("hidden_size", "wide"),
              HasSubstr("hidden_size is \"wide\": expected a whole number"));
  EXPECT_THAT(problem_of("hidden_size", -4), HasSubstr("d_model"));
  EXPECT_THAT(problem_of("num_hidden_layers", 100000000), HasSubstr("n_layers"));
  EXPECT_THAT(problem_of("model_type", "mamba"),
              HasSubstr("this family is not known; known are gpt2, llama"));
  EXPECT_THAT(problem_of("architectures", {"LlamaForQuestionAnswering"}),
              HasSubstr("of llama are known LlamaForCausalLM"));
  EXPECT_THAT(problem_of("quantization_config", {{"bits", 4}}),
              HasSubstr("weights that are quantized by a method without a name are not supported"));
  EXPECT_THAT(problem_of("quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}),
              HasSubstr("quantization_config: weights that are quantized by gptq are not supported: known "
                        "are mxfp4, and fp8 in blocks"));
  EXPECT_THAT(problem_of("quantization_config", {{"quant_method", "awq"}, {"bits", 4}}),
              HasSubstr("quantized by awq"));
  EXPECT_THAT(problem_of("quantization_config", {{"load_in_4bit", true}}),
              HasSubstr("quantized by bitsandbytes"));
  EXPECT_THAT(problem_of("quantization_config", {{"quant_method", "fp8"}}), HasSubstr("quantized by fp8"));
  EXPECT_THAT(problem_of("quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {128}}}),
              HasSubstr("expected two numbers"));
  EXPECT_THAT(problem_of("quantization_config", {{"quant_method", "mxfp4"}, {"group", 32}}),
              HasSubstr("group is 32: this key is not known"));
  EXPECT_THAT(problem_of("auto_map", {{"AutoModel", "code.Model"}}), HasSubstr("this is not supported"));
  EXPECT_THAT(problem_of("eos_token_id", "end"), HasSubstr("eos_token_id"));
}

TEST(ForeignLabels, WithoutNamesHaveNumbers) {
  const auto labels_of = [](nlohmann::json more) {
    more["model_type"] = "bert";
    more["architectures"] = {"BertForSequenceClassification"};
    return describe_foreign(ForeignConfig("config.json", more), {}, "x").labels;
  };
  EXPECT_THAT(labels_of({}), ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_THAT(labels_of({{"num_labels", 3}}), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(labels_of({{"id2label", {{"0", "no"}, {"1", "yes"}}}}), ElementsAre("no", "yes"));
  EXPECT_THAT(labels_of({{"id2label", {{"0", 0}, {"1", 1}}}}), ElementsAre("0", "1"));
  EXPECT_THAT(message_of<CheckpointError>([&] { labels_of({{"num_labels", -1}}); }),
              HasSubstr("num_labels is -1: expected a number from 1 to 100000"));
}

TEST(ForeignTensors, ThatDoNotFitAreNamed) {
  const auto problem_with = [](const std::function<void(TensorMap&)>& change) {
    TinyLlama tiny;
    return tiny.problem_with([&](TinyLlama& model) { change(model.tensors()); });
  };
  EXPECT_THAT(problem_with([](TensorMap& tensors) { tensors.erase("model.norm.weight"); }),
              HasSubstr("it has no tensor 'model.norm.weight'"));
  EXPECT_THAT(
      problem_with([](TensorMap& tensors) { tensors.emplace("model.extra.weight", torch::ones({2})); }),
      HasSubstr("its tensor 'model.extra.weight' is not in the model"));
  EXPECT_THAT(problem_with([](TensorMap& tensors) { tensors.at("model.norm.weight") = torch::ones({3}); }),
              HasSubstr("its tensor 'model.norm.weight' is (3), but (4) by its config.json"));
  // It differs from the embeddings, so the model is not tied, whatever its config.json says.
  EXPECT_EQ(problem_with([](TensorMap& tensors) { tensors.emplace("lm_head.weight", torch::ones({5, 4})); }),
            "no error");
  EXPECT_EQ(problem_with([](TensorMap& tensors) {
              tensors.emplace("lm_head.weight", tensors.at("model.embed_tokens.weight").clone());
            }),
            "no error");
  EXPECT_THAT(problem_with([](TensorMap& tensors) { tensors.at("model.norm.weight").fill_(NAN); }),
              HasSubstr("decoder.final_norm.weight"));
}

TEST(ForeignIndex, LeadsOnlyToFilesOfItsDirectory) {
  const auto problem_with = [](const std::string& key, const Json& value) {
    TinyLlama tiny;
    tiny.shard();
    auto index = Json::parse(read_file(tiny.path() / "model.safetensors.index.json"));
    index["weight_map"][key] = value;
    tiny.write("model.safetensors.index.json", index.dump());
    return tiny.problem();
  };
  const std::string norm = "model.norm.weight";
  EXPECT_THAT(problem_with(norm, "../x.safetensors"),
              HasSubstr("'../x.safetensors' is not the name of a file in this directory"));
  EXPECT_THAT(problem_with(norm, "/etc/passwd"), HasSubstr("is not the name of a file in this directory"));
  EXPECT_THAT(problem_with(norm, 7), HasSubstr("the place of 'model.norm.weight' is not the name of a file"));
  EXPECT_THAT(problem_with(norm, "three.safetensors"),
              HasSubstr("is not listed, or is listed in another file"));
  EXPECT_THAT(problem_with("other", "one.safetensors"), HasSubstr("'other' is not in one.safetensors"));
  TinyLlama tiny;
  tiny.shard();
  tiny.write("model.safetensors.index.json", "[1]");
  EXPECT_THAT(tiny.problem(), HasSubstr("it has no object weight_map"));
}

TEST(ForeignIndex, HasEachTensorOnce) {
  TinyLlama tiny;
  tiny.shard();
  save_safetensors(tiny.path() / "two.safetensors", tiny.tensors());
  EXPECT_THAT(tiny.problem(), HasSubstr("is not listed, or is listed in another file"));
}

TEST(ForeignLinks, AreFollowedWithinTheDirectoryAndTheHubsCache) {
  TinyLlama tiny;
  // As the Hub's cache has it: snapshots/REVISION/NAME → ../../blobs/HASH.
  const auto root = tiny.beside("models--tiny");
  fs::create_directories(root / "snapshots" / "1");
  fs::create_directories(root / "blobs");
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    fs::copy_file(tiny.path() / name, root / "blobs" / (std::string("blob-") + name));
    fs::create_symlink(fs::path("../../blobs") / (std::string("blob-") + name),
                       root / "snapshots" / "1" / name);
  }
  Run::open(root / "snapshots" / "1");

  fs::rename(tiny.path() / "model.safetensors", tiny.beside("elsewhere"));
  fs::create_symlink(tiny.beside("elsewhere"), tiny.path() / "model.safetensors");
  EXPECT_THAT(tiny.problem(), HasSubstr("a link that leads out of the directory, which is not followed"));
}

/// What generation_config.json makes of `generation:`; the message if it is refused.
class GenerationFile {
 public:
  GenerationConfig read(const Json& file) {
    tiny_.write("generation_config.json", file.dump());
    return read_foreign_experiment(tiny_.path()).generation;
  }
  std::string problem(const Json& file) {
    return message_of<Error>([&] { read(file); });
  }
  TinyLlama& tiny() { return tiny_; }

 private:
  TinyLlama tiny_;
};

TEST(GenerationFiles, AreReadWhole) {
  GenerationFile files;
  const auto options = files.read({{"max_length", 7},
                                   {"min_length", 3},
                                   {"bad_words_ids", {{1}, {2, 3}, {4}}},
                                   {"suppress_tokens", {0}},
                                   {"sequence_bias", {{{1, 2}, 1.5}}},
                                   {"eos_token_id", 4},
                                   {"encoder_repetition_penalty", 1.2},
                                   {"encoder_no_repeat_ngram_size", 2},
                                   {"exponential_decay_length_penalty", {2, 1.5}},
                                   {"do_sample", true},
                                   {"epsilon_cutoff", 0.01},
                                   {"eta_cutoff", 0.02},
                                   {"num_return_sequences", 2},
                                   {"renormalize_logits", true},
                                   {"stop_strings", "c"},
                                   {"guidance_scale", 1.0},
                                   {"watermarking_config", nullptr},
                                   {"cache_implementation", "static"},
                                   {"remove_invalid_values", true}});
  EXPECT_EQ(options.max_length, 7);
  EXPECT_FALSE(options.max_new_tokens);
  EXPECT_EQ(options.min_length, 3);
  EXPECT_THAT(options.suppress_tokens, ElementsAre(0, 1)) << "an end token is no bad word";
  ASSERT_EQ(options.sequence_biases.size(), 2U);
  EXPECT_THAT(options.sequence_biases[0].tokens, ElementsAre(2, 3));
  EXPECT_FALSE(options.sequence_biases[0].bias);
  EXPECT_EQ(options.sequence_biases[1].bias, 1.5);
  EXPECT_EQ(options.encoder_repetition_penalty, 1.2);
  EXPECT_EQ(options.encoder_no_repeat_ngram_size, 2);
  EXPECT_THAT(options.exponential_decay_length_penalty, ElementsAre(2, 1.5));
  EXPECT_EQ(options.epsilon_cutoff, 0.01);
  EXPECT_EQ(options.eta_cutoff, 0.02);
  EXPECT_EQ(options.num_samples, 2);
  EXPECT_TRUE(options.renormalize_logits);
  EXPECT_THAT(options.stop, ElementsAre("c"));
  EXPECT_FALSE(options.ignore_eos);
  const auto greedy = files.read({{"epsilon_cutoff", 0.01}, {"temperature", 0.5}, {"top_h", 0.4}});
  EXPECT_EQ(greedy.temperature, 0);
  EXPECT_EQ(greedy.epsilon_cutoff, 0);
}

TEST(GenerationFiles, ReplaceTheKeysOfTheModelsConfiguration) {
  GenerationFile files;
  files.tiny().config().update({{"forced_bos_token_id", 1},
                                {"num_beams", 3},
                                {"suppress_tokens", {2}},
                                {"bad_words_ids", {{0}}},
                                {"min_length", 5}});
  files.tiny().save();
  const auto old = read_foreign_experiment(files.tiny().path()).generation;
  EXPECT_EQ(old.beam, 3);
  EXPECT_EQ(old.min_length, 5);
  EXPECT_EQ(old.forced_first_token, 1);
  EXPECT_THAT(old.suppress_tokens, ElementsAre(2, 0));
  EXPECT_FALSE(old.ignore_eos);
  const auto own = files.read({{"num_beams", 2}});
  EXPECT_EQ(own.beam, 2);
  EXPECT_EQ(own.min_length, 0);
  EXPECT_FALSE(own.forced_first_token);
  EXPECT_THAT(own.suppress_tokens, ElementsAre());
  EXPECT_TRUE(own.ignore_eos) << "eos_token_id of config.json does not count";
}

TEST(GenerationFiles, WithUnknownKeysAreRefused) {
  GenerationFile files;
  EXPECT_THAT(files.problem({{"temperatur", 2}}),
              HasSubstr("generation_config.json: temperatur is 2: this key is not known"));
  const Json refused = {{"guidance_scale", 1.5},
                        {"watermarking_config", {{"bias", 2.0}}},
                        {"penalty_alpha", 0.6},
                        {"dola_layers", "high"},
                        {"force_words_ids", {{1}}},
                        {"token_healing", true},
                        {"max_time", 1.0},
                        {"early_stopping", "sometimes"},
                        {"bad_words_ids", {{}}},
                        {"sequence_bias", {{"(1,)", 1.0}}},
                        {"exponential_decay_length_penalty", {1}},
                        {"forced_eos_token_id", {1, 2}},
                        {"lang_to_id", {{"<|en|>", 1}}},
                        {"eos_token_id", -2}};
  for (const auto& [key, value] : refused.items())
    EXPECT_THAT(files.problem({{key, value}}), HasSubstr("generation_config.json: " + key + " is ")) << value;
  EXPECT_THAT(files.problem({{"do_sample", true}, {"num_beams", 2}}),
              HasSubstr("beams that sample are not supported"));
  EXPECT_THAT(files.problem({{"do_sample", true}, {"top_h", 0.5}}), HasSubstr("top_h is 0.5"));
}

TEST(ForeignDirectory, WithOtherFilesOfWeightsSaysWhatToDo) {
  TinyLlama tiny;
  fs::remove(tiny.path() / "model.safetensors");
  EXPECT_THAT(tiny.problem(), HasSubstr("no weights: there is no model.safetensors, no pytorch_model.bin"));
  tiny.write("tf_model.h5", "x");
  EXPECT_THAT(tiny.problem(), HasSubstr("tf_model.h5: only weights of TensorFlow"));
  tiny.write("pytorch_model.bin", "x");
  EXPECT_THAT(tiny.problem(), HasSubstr("pytorch_model.bin': not a file of torch.save()"));
  tiny.save();
  fs::rename(tiny.path() / "model.safetensors", tiny.path() / "model.fp16.safetensors");
  fs::remove(tiny.path() / "pytorch_model.bin");
  fs::remove(tiny.path() / "tf_model.h5");
  EXPECT_THAT(tiny.problem(), HasSubstr("model.fp16.safetensors: rename the file to model.safetensors"));
}

TEST(ForeignDirectory, WithModelsInItsFoldersNamesTheOneWithWeights) {
  const TempDir dir;
  dir.write("x/0_Transformer/pytorch_model.bin", "");
  for (const std::string folder : {"0_Transformer", "1_Pooling", "2_Normalize"})
    dir.write("x/" + folder + "/config.json", "{}");
  EXPECT_THAT(message_of<CheckpointError>([&] { Run::open(dir / "x"); }), HasSubstr("x/0_Transformer"));
}

// The class that AutoModel opens: a body, where config.json does not say more.
TEST(ForeignDirectory, WithoutAClassMayBeABody) {
  TinyLlama tiny;
  tiny.config()["tie_word_embeddings"] = false;
  EXPECT_THAT(tiny.problem_with([](TinyLlama&) {}), HasSubstr("it has no tensor 'lm_head.weight'"));
  for (const Json& none : {Json(), Json::array()}) {
    tiny.config()["architectures"] = none;
    tiny.save();
    EXPECT_EQ(task_type(Run::open(tiny.path()).experiment()).name, "text_features");
  }
}

// A value that no key of ours can have is named with the file that has it.
TEST(ForeignDirectory, WithAValueOutOfRangeNamesItsFile) {
  TinyLlama tiny;
  tiny.write("generation_config.json", R"({"do_sample": true, "top_p": 2.0})");
  const auto problem = tiny.problem();
  EXPECT_THAT(problem,
              HasSubstr("generation_config.json: it describes what cannot be built: generation.top_p"));
  EXPECT_THAT(problem, Not(HasSubstr("tiny/config.json")));
}

TEST(GgufKeysOfPositions, AreReadAsLlamaCppReadsThem) {
  const auto scaling = [](const Json& more) {
    Json keys = {{"llama.embedding_length", 8}, {"llama.feed_forward_length", 8},
                 {"llama.block_count", 1},      {"llama.attention.head_count", 2},
                 {"llama.context_length", 16},  {"llama.attention.layer_norm_rms_epsilon", 1e-5},
                 {"llama.vocab_size", 5},       {"llama.rope.dimension_count", 4}};
    keys.update(more);
    const auto config =
        config_of_gguf(*find_gguf_architecture("llama"), GgufKeys("x.gguf", keys), GgufTensorFacts{});
    return config.value("rope_scaling", Json()).dump();
  };
  const std::string by_four = R"({"factor":4.0,"rope_type":"linear"})", none = "null";
  EXPECT_EQ(scaling(Json::object()), none);
  EXPECT_EQ(scaling({{"llama.rope.scaling.factor", 4.0}}), by_four);
  EXPECT_EQ(scaling({{"llama.rope.scale_linear", 4.0}}), by_four);
  EXPECT_EQ(scaling({{"llama.rope.scaling.factor", 4.0}, {"llama.rope.scaling.type", "none"}}), none);
  EXPECT_EQ(scaling({{"llama.rope.scaling.attn_factor", 1.0}}), none);
  for (const std::string key :
       {"llama.rope.scaling.attn_factor", "llama.rope.scaling.yarn_log_multiplier", "llama.rope.another"})
    EXPECT_THAT(message_of<CheckpointError>([&] { scaling({{key, 0.5}}); }), HasSubstr(key));
}

// Whoever sends a pointer of Git LFS or a page of HTML in place of a file gets a line that says so.
TEST(ForeignDirectory, WithFilesThatWereNotDownloadedSaysSo) {
  for (const std::string name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    SCOPED_TRACE(name);
    TinyLlama tiny;
    tiny.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    EXPECT_THAT(tiny.problem(), HasSubstr("only a pointer of Git LFS"));
    tiny.write(name, "\xEF\xBB\xBF\n <!DOCTYPE HTML><html>");
    EXPECT_THAT(tiny.problem(), HasSubstr("a page of HTML in place of the file"));
    tiny.write(name, "");
    EXPECT_THAT(tiny.problem(), HasSubstr("the file is empty"));
  }
}

TEST(Imports, AreRunsWithTheStoredTypes) {
  TinyLlama tiny;
  tiny.tensors().at("model.norm.weight") = tiny.tensors().at("model.norm.weight").to(torch::kHalf);
  tiny.save();
  const auto imported = import_run(tiny.path(), tiny.beside("runs/one"));
  EXPECT_EQ(imported.model_type, "llama");
  EXPECT_TRUE(is_run(tiny.beside("runs/one")));
  const SafetensorsFile weights(tiny.beside("runs/one") / "model.safetensors");
  EXPECT_EQ(weights.dtype("decoder.final_norm.weight"), torch::kHalf);
  EXPECT_EQ(weights.dtype("token_embedding.weight"), torch::kFloat);
  Run::open(tiny.beside("runs/one"));
  EXPECT_THAT(message_of<UsageError>([&] { import_run(tiny.path(), tiny.beside("runs/one")); }),
              HasSubstr("exists already; name a new directory"));
  EXPECT_THAT(message_of<UsageError>([&] { import_run(tiny.beside("runs/one"), tiny.beside("runs/two")); }),
              HasSubstr("is a run already"));
  EXPECT_THAT(message_of<UsageError>([&] { import_run(tiny.beside("runs"), tiny.beside("runs/two")); }),
              HasSubstr("neither a directory with a config.json"));
}

// Marian's sinusoids: some files have them.
TEST(ComputedTensors, ThatAreStoredMustHaveTheirValues) {
  const TempDir dir;
  TensorRules rules;
  rules.module("out", "there").computed("table", [] { return torch::arange(6, torch::kFloat).view({2, 3}); });
  const TensorMapping mapping(rules, {{"out.weight", {2}}});
  const auto problem_with = [&](const torch::Tensor& table) {
    TensorMap tensors = {{"there.weight", torch::ones({2})}};
    if (table.defined()) tensors.emplace("table", table);
    save_safetensors(dir.path() / "x.safetensors", tensors);
    return message_of<CheckpointError>(
        [&] { mapping.imported(std::make_shared<SafetensorsFile>(dir.path() / "x.safetensors")); });
  };
  const auto right = torch::arange(6, torch::kFloat).view({2, 3});
  EXPECT_EQ(problem_with({}), "no error");
  EXPECT_EQ(problem_with(right), "no error");
  EXPECT_EQ(problem_with((right + 1e-4).to(torch::kHalf)), "no error");
  EXPECT_THAT(problem_with(right + 1e-4),
              HasSubstr("its tensor 'table' has other values than its config.json"));
  EXPECT_THAT(problem_with(right.view({3, 2})), HasSubstr("other values"));
}

/// Files that say the same in other ways.
class TensorsOfOthers : public ::testing::Test {
 protected:
  TensorsOfOthers() {
    rules_.prefix("body.")
        .module("in", "body.LayerNorm")
        .tensor("bias", "bias")
        .module("out", "head")
        .absent("bias", [] { return torch::zeros({2}); })
        .tied("head.weight", "body.LayerNorm.weight");
  }
  TensorMapping mapping() const { return {rules_, {{"in.weight", {2}}, {"bias", {2}}}}; }
  std::shared_ptr<const TensorSource> file(const TensorMap& tensors) const {
    save_safetensors(dir_.path() / "x.safetensors", tensors);
    return std::make_shared<SafetensorsFile>(dir_.path() / "x.safetensors");
  }

  TempDir dir_;
  TensorRules rules_;
};

TEST_F(TensorsOfOthers, HaveTheFirstNamesOfBert) {
  const auto one = torch::ones({2}), two = 2 * one;
  const auto old = mapping().imported(file({{"body.LayerNorm.gamma", two}, {"bias", one}}));
  EXPECT_TRUE(old->tensor("in.weight").equal(two));
  EXPECT_TRUE(old->tensor("bias").equal(one));
  const auto both = file({{"body.LayerNorm.gamma", two}, {"body.LayerNorm.weight", two}});
  EXPECT_THAT(message_of<CheckpointError>([&] { mapping().imported(both); }),
              HasSubstr("'body.LayerNorm.gamma' and 'body.LayerNorm.weight' are two names of one tensor"));
}

TEST_F(TensorsOfOthers, HaveFullNames) {
  rules_.ignore("body.unused.*");
  const auto full = mapping().with_full_names(file(
      {{"LayerNorm.gamma", torch::ones({2})}, {"bias", torch::ones({2})}, {"unused.x", torch::ones({1})}}));
  EXPECT_THAT(full->names(), ElementsAre("bias", "body.LayerNorm.weight", "body.unused.x"));
  EXPECT_EQ(mapping().full_name("head.weight"), "head.weight");
  EXPECT_EQ(mapping().full_name("other"), "other");
  EXPECT_EQ(mapping().stored_name("body.LayerNorm.weight", ForeignNames::without_prefix), "LayerNorm.weight");
}

TEST(ForeignRowsOfAMatrix, AreWhereTheRulesPutThem) {
  TensorRules rules;
  rules.modules({"qkv"}, {"q", "k", "v"}, {4, 2, 2}).modules({"a", "b"}, {"ab"}, {}, Move::transposed);
  const TensorMapping mapping(rules, {{"qkv.weight", {8, 3}}, {"a.weight", {2, 3}}, {"b.weight", {5, 3}}});
  const auto shown = [](const std::vector<ForeignRows>& rows) {
    std::string text;
    for (const auto& part : rows)
      text += fmt::format("{} {} {} {} ", part.tensor, part.ours, part.theirs, part.count);
    return text;
  };
  EXPECT_EQ(shown(mapping.foreign_rows("qkv.weight", 4, 2)), "k.weight 0 0 2 ");
  EXPECT_EQ(shown(mapping.foreign_rows("qkv.weight", 3, 4)), "q.weight 0 3 1 k.weight 1 0 2 v.weight 3 0 1 ");
  const auto rows = mapping.foreign_rows("b.weight", 1, 4);
  EXPECT_EQ(shown(rows), "ab.weight 0 3 4 ");
  EXPECT_EQ(rows.front().shape, (std::vector<int64_t>{3, 7}));
  EXPECT_TRUE(mapping.is_transposed("ab.weight"));
  EXPECT_FALSE(mapping.is_transposed("q.weight"));
}

TEST_F(TensorsOfOthers, AreCreatedWhereTheyMayBeAbsent) {
  const auto body = mapping().imported(file({{"LayerNorm.weight", torch::ones({2})}}));
  EXPECT_TRUE(body->tensor("bias").equal(torch::zeros({2})));
  EXPECT_THAT(message_of<CheckpointError>([&] { mapping().imported(file({{"bias", torch::ones({2})}})); }),
              HasSubstr("it has no tensor 'LayerNorm.weight'"));
}

TEST_F(TensorsOfOthers, MayHaveOneOfTwoEqualOnesAndAnOutputOfTheirOwn) {
  const auto one = torch::ones({2});
  const auto copy = file({{"head.weight", one}, {"bias", one}});
  EXPECT_TRUE(mapping().imported(copy)->tensor("in.weight").equal(one));
  EXPECT_FALSE(mapping().has_own_output(copy));
  EXPECT_FALSE(mapping().has_own_output(file({{"head.weight", one}, {"body.LayerNorm.gamma", one}})));
  EXPECT_TRUE(mapping().has_own_output(file({{"head.weight", one}, {"body.LayerNorm.gamma", 2 * one}})));
  EXPECT_TRUE(mapping().has_module(copy, "out"));  // this model has no module of this name
  EXPECT_FALSE(mapping().has_module(file({{"bias", one}}), "in"));
}

TEST(Exports, OfWhatNoFamilyComputesNameTheKey) {
  TinyLlama tiny;
  import_run(tiny.path(), tiny.beside("run"));
  const auto config = tiny.beside("run") / "config.yaml";
  auto text = read_file(config);
  const std::string key = "norm_placement: pre";
  ASSERT_NE(text.find(key), text.npos);
  text.replace(text.find(key), key.size(), "norm_placement: residual_post");
  write_file_atomically(config, text);
  EXPECT_THAT(message_of<ConfigError>([&] { export_run(tiny.beside("run"), tiny.beside("out")); }),
              HasSubstr("the nearest family, llama, has model.norm_placement pre (here residual_post)"));
  EXPECT_FALSE(fs::exists(tiny.beside("out")));
}

}  // namespace
}  // namespace zoo::testing
