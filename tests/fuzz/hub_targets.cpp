// Directories in Hugging Face's form: config.json, the files beside it, and the list of files of weights.

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "interop/foreign_files.h"
#include "interop/foreign_model.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "tests/fuzz/targets.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTinyTokenizer = R"({"version": "1.0", "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": null, "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<end>": 3}, "merges": ["a b"]}})";

/// The tensors of the first seed, a tiny GPT-2 with two layers, in two files.
void write_weights(const fs::path& dir) {
  TensorMap first, second;
  const auto add = [&](TensorMap& to, const std::string& name, std::vector<int64_t> shape) {
    to.emplace("transformer." + name, torch::ones(shape));
  };
  add(first, "wte.weight", {4, 8});
  add(first, "wpe.weight", {6, 8});
  for (const char* layer : {"h.0.", "h.1."}) {
    auto& to = layer[2] == '0' ? first : second;
    const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
      add(to, layer + name + ".weight", {in, out});
      add(to, layer + name + ".bias", {out});
    };
    for (const char* norm : {"ln_1", "ln_2"}) {
      add(to, layer + std::string(norm) + ".weight", {8});
      add(to, layer + std::string(norm) + ".bias", {8});
    }
    linear("attn.c_attn", 8, 24);
    linear("attn.c_proj", 8, 8);
    linear("mlp.c_fc", 8, 10);
    linear("mlp.c_proj", 10, 8);
  }
  add(second, "ln_f.weight", {8});
  add(second, "ln_f.bias", {8});
  save_safetensors(dir / "model-1.safetensors", first);
  save_safetensors(dir / "model-2.safetensors", second);
  first.merge(second);
  save_safetensors(dir / "model.safetensors", first);
}

/// The kinds of model whose companions are fuzzed, and config.json of each.
const std::map<std::string, std::string>& companion_configs() {
  static const std::map<std::string, std::string> configs = {
      {"gpt2",
       R"({"model_type": "gpt2", "vocab_size": 4, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_inner": 10,
"n_positions": 6, "bos_token_id": 3, "eos_token_id": 3})"},
      {"whisper",
       R"({"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "vocab_size": 4,
"num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 12, "d_model": 8, "encoder_layers": 1,
"decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8,
"decoder_ffn_dim": 8, "activation_function": "gelu", "bos_token_id": 3, "eos_token_id": 3, "pad_token_id": 3,
"decoder_start_token_id": 2})"},
      {"detr", R"({"architectures": ["DetrForObjectDetection"], "model_type": "detr", "num_queries": 5,
"id2label": {"0": "cat", "1": "dog"}, "use_timm_backbone": false, "use_pretrained_backbone": false, "backbone": null,
"position_embedding_type": "sine", "d_model": 24, "encoder_layers": 1, "decoder_layers": 1,
"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 22, "decoder_ffn_dim": 22,
"backbone_config": {"model_type": "resnet", "out_features": ["stage4"], "layer_type": "basic",
"depths": [2, 2, 2, 2], "hidden_sizes": [4, 8, 16, 32], "embedding_size": 4}})"},
      {"vit", R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 8,
"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "image_size": 16, "patch_size": 4,
"id2label": {"0": "cat", "1": "dog"}})"}};
  return configs;
}

/// The files of sentence vectors, which stand beside a gpt2; each is fuzzed beside the others.
const std::map<std::string, std::string>& sentence_files() {
  static const std::map<std::string, std::string> files = {
      {"modules.json",
       R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
{"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.base.modules.dense.Dense", "kwargs": []},
{"idx": 3, "name": "3", "path": "3_Normalize", "type": "sentence_transformers.models.Normalize"}])"},
      {"1_Pooling/config.json",
       R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true,
"pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false, "include_prompt": false})"},
      {"2_Dense/config.json",
       R"({"in_features": 16, "out_features": 3, "bias": true,
"activation_function": "torch.nn.modules.activation.Tanh", "module_input_name": "sentence_embedding"})"},
      {"sentence_bert_config.json", R"({"max_seq_length": 5, "do_lower_case": true})"},
      {"config_sentence_transformers.json",
       R"({"__version__": {"pytorch": "2.0"}, "prompts": {"query": "q: "}, "default_prompt_name": "query",
"similarity_fn_name": "cosine", "model_type": "SentenceTransformer"})"}};
  return files;
}

/// A file that says how a model generates or how its inputs are made: a line with the kind of model and the
/// file's name, and its content.
Seeds companion_seeds() {
  Seeds seeds = {R"(gpt2 generation_config.json
{"do_sample": true, "temperature": 0.7, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "typical_p": 0.8,
"num_beams": 2, "num_beam_groups": 2, "diversity_penalty": 0.5, "length_penalty": 2.0, "early_stopping": "never",
"repetition_penalty": 1.1, "no_repeat_ngram_size": 3, "min_new_tokens": 1, "max_new_tokens": 5,
"bos_token_id": 3, "pad_token_id": 0, "eos_token_id": [3, 2], "forced_bos_token_id": 1, "forced_eos_token_id": 2,
"bad_words_ids": [[1], [2]], "suppress_tokens": [0], "transformers_version": "5.0.0"})",
                 R"(gpt2 generation_config.json
{"max_length": 9, "min_length": 2, "bad_words_ids": [[1], [2, 1]], "sequence_bias": [[[1, 2], -1.5], [[0], 2.0]],
"exponential_decay_length_penalty": [2, 1.5], "encoder_repetition_penalty": 1.2, "encoder_no_repeat_ngram_size": 2,
"epsilon_cutoff": 0.001, "eta_cutoff": 0.002, "num_return_sequences": 2, "num_beams": 2, "renormalize_logits": true,
"stop_strings": ["a", "b"], "guidance_scale": 1.0, "penalty_alpha": 0.0, "force_bos_token_to_be_generated": true,
"cache_implementation": "hybrid", "_from_model_config": true, "remove_invalid_values": true})",
                 R"(whisper generation_config.json
{"decoder_start_token_id": 2, "eos_token_id": 3, "begin_suppress_tokens": [1, 3],
"suppress_tokens": [2], "forced_decoder_ids": [[1, 0], [2, null], [3, 1]], "no_timestamps_token_id": 1,
"is_multilingual": true, "lang_to_id": {"<|en|>": 0}, "task_to_id": {"transcribe": 1}, "language": "en",
"task": "transcribe", "return_timestamps": false, "max_initial_timestamp_index": 50, "alignment_heads": [[0, 1]]})",
                 R"(whisper preprocessor_config.json
{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000,
"n_fft": 400, "hop_length": 160, "chunk_length": 30, "n_samples": 480000, "nb_max_frames": 3000, "padding_side": "right",
"padding_value": 0.0, "dither": 0.0, "return_attention_mask": false})",
                 R"(detr preprocessor_config.json
{"image_processor_type": "DetrImageProcessor", "do_resize": true, "do_rescale": true,
"do_normalize": true, "resample": 2, "size": {"shortest_edge": 64, "longest_edge": 90}, "image_mean": [0.4, 0.4, 0.4],
"image_std": [0.2, 0.2, 0.2], "format": "coco_detection"})",
                 R"(detr preprocessor_config.json
{"size": 64, "max_size": 90, "image_mean": [0.4, 0.4, 0.4]})",
                 R"(vit preprocessor_config.json
{"image_processor_type": "CLIPImageProcessor", "do_resize": true, "size": {"shortest_edge": 20}, "resample": 3,
"do_center_crop": true, "crop_size": {"height": 16, "width": 16}, "do_rescale": true, "rescale_factor": 0.0039,
"do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": 0.5, "do_convert_rgb": true})",
                 R"(vit processor_config.json
{"image_processor": {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}},
"processor_class": "Processor"})"};
  for (const auto& [name, content] : sentence_files()) seeds.push_back("gpt2 " + name + "\n" + content);
  return seeds;
}

/// Opens a model of the kind that the first line names, with this file beside its config.json.
void read_companion(const fs::path& work, const std::string& input) {
  static const std::set<std::string> companions = {"generation_config.json", "preprocessor_config.json",
                                                   "processor_config.json"};
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string line = input.substr(0, end);
  const auto found = std::ranges::find_if(companion_configs(), [&](const auto& config) {
    return line.starts_with(config.first + " ") &&
           (companions.contains(line.substr(config.first.size() + 1)) ||
            (config.first == "gpt2" && sentence_files().contains(line.substr(config.first.size() + 1))));
  });
  if (found == companion_configs().end()) throw CheckpointError("no such companion");
  const auto dir = work / found->first;
  for (const auto& name : companions) fs::remove(dir / name);
  for (const auto& [name, content] : sentence_files()) {
    if (found->first != "gpt2") break;
    fs::create_directories((dir / name).parent_path());
    write_file_atomically(dir / name, content);
  }
  write_file_atomically(dir / line.substr(found->first.size() + 1),
                        input.substr(std::min(end + 1, input.size())));
  read_foreign_experiment(dir);
  try {
    open_foreign(dir);
  } catch (const CheckpointError&) {
    // There are no weights.
  }
}

/// Adapters for the model of write_weights(): of maps, of embeddings, and a matrix that is brought whole.
Seeds adapter_seeds() {
  return {
      R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "base", "r": 2, "lora_alpha": 4,
"target_modules": ["c_attn", "wte"], "modules_to_save": ["score"], "fan_in_fan_out": true, "bias": "none",
"rank_pattern": {"attn.c_attn": 3}, "alpha_pattern": {"wte": 1}, "use_rslora": true, "init_lora_weights": true,
"layers_to_transform": null, "inference_mode": true, "lora_dropout": 0.1, "use_dora": false})",
      R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "../adapter-base", "r": 2,
"rank_pattern": {"h.0.attn.c_attn": 3}, "auto_mapping": null})",
      R"({"peft_type": "LORA", "task_type": null, "auto_mapping": {"base_model_class": "GPT2ForSequenceClassification",
"parent_library": "transformers.models.gpt2.modeling_gpt2"}, "r": 2, "rank_pattern": {"c_attn": 3}, "alpha_pattern": {}})"};
}

void write_adapter(const fs::path& dir) {
  const std::string prefix = "base_model.model.transformer.";
  save_safetensors(dir / "adapter_model.safetensors",
                   {{prefix + "h.0.attn.c_attn.lora_A.weight", torch::ones({3, 8})},
                    {prefix + "h.0.attn.c_attn.lora_B.weight", torch::ones({24, 3})},
                    {prefix + "wte.lora_embedding_A", torch::ones({2, 4})},
                    {prefix + "wte.lora_embedding_B", torch::ones({8, 2})},
                    {"base_model.model.score.weight", torch::ones({3, 8})}});
}

void read_all(const TensorSource& tensors) {
  for (const auto& name : tensors.names()) tensors.tensor(name).sum();
}

}  // namespace

std::vector<Target> hub_targets(const testing::TempDir& work, const fs::path& sources) {
  const auto whole = work / "foreign", sharded = work / "index";
  for (const auto& dir : {whole, sharded}) {
    fs::create_directories(dir);
    write_weights(dir);
    write_file_atomically(dir / "tokenizer.json", kTinyTokenizer);
  }
  fs::remove(sharded / "model.safetensors");
  fs::copy_file(sources / "tests/fuzz/seeds/foreign/gpt2.json", sharded / "config.json",
                fs::copy_options::overwrite_existing);
  std::vector<Target> targets;
  targets.push_back({"foreign", "config.json in Hugging Face's form, with weights and a tokenizer",
                     mutate_text, [whole](const std::string& input) {
                       write_file_atomically(whole / "config.json", input);
                       read_foreign_experiment(whole);
                       try {
                         read_all(*open_foreign(whole).tensors);
                       } catch (const CheckpointError&) {
                         // The weights are those of one seed.
                       }
                     }});
  const auto base = work / "adapter-base", adapter = work / "adapter";
  for (const auto& dir : {base, adapter}) fs::create_directories(dir);
  write_weights(base);
  write_file_atomically(base / "tokenizer.json", kTinyTokenizer);
  fs::copy_file(sources / "tests/fuzz/seeds/foreign/gpt2.json", base / "config.json",
                fs::copy_options::overwrite_existing);
  write_adapter(adapter);
  targets.push_back({"adapter", "adapter_config.json of PEFT, with its tensors and its base", mutate_text,
                     [base, adapter](const std::string& input) {
                       write_file_atomically(adapter / "adapter_config.json", input);
                       read_all(*open_foreign(adapter, base).tensors);
                     },
                     adapter_seeds()});
  const auto companions = work / "companions";
  for (const auto& [kind, config] : companion_configs()) {
    fs::create_directories(companions / kind);
    write_file_atomically(companions / kind / "config.json", config);
    write_file_atomically(companions / kind / "tokenizer.json", kTinyTokenizer);
  }
  targets.push_back(
      {"companions",
       "generation_config.json, preprocessor_config.json, modules.json and others beside config.json",
       mutate_request, [companions](const std::string& input) { read_companion(companions, input); },
       companion_seeds()});
  targets.push_back({"index", "model.safetensors.index.json: where the tensors of a model are", mutate_text,
                     [sharded](const std::string& input) {
                       write_file_atomically(sharded / "model.safetensors.index.json", input);
                       read_all(*open_foreign(sharded).tensors);
                     }});
  return targets;
}

}  // namespace zoo::fuzz
