// GGUF files: keys, tensors, tokenizer, chat template.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "base/error.h"
#include "interop/foreign_model.h"
#include "interop/stored_texts.h"
#include "io/files.h"
#include "io/formats/gguf_file.h"
#include "io/formats/gguf_writer.h"
#include "io/safetensors.h"
#include "tests/fuzz/targets.h"
#include "text/chat_template.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 16;  // tokens
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '</s>' }}{% endfor %}";

GgufMetadata llama_keys(const std::string& architecture) {
  const auto key = [&](const char* name) { return architecture + "." + name; };
  return {{"general.architecture", architecture},
          {key("vocab_size"), static_cast<uint32_t>(kRows)},
          {key("embedding_length"), uint32_t{32}},
          {key("feed_forward_length"), uint32_t{32}},
          {key("block_count"), uint32_t{1}},
          {key("context_length"), uint32_t{16}},
          {key("attention.head_count"), uint32_t{2}},
          {key("attention.head_count_kv"), uint32_t{1}},
          {key("attention.key_length"), uint32_t{16}},
          {key("attention.value_length"), uint32_t{16}},
          {key("rope.dimension_count"), uint32_t{16}},
          {key("rope.freq_base"), 10000.0F},
          {key("attention.layer_norm_rms_epsilon"), 1e-5F}};
}

void add_tokens(std::vector<std::string> tokens, std::vector<int32_t> kinds, GgufMetadata& to) {
  for (auto i = static_cast<int64_t>(tokens.size()); i < kRows; ++i) {
    tokens.push_back("[PAD" + std::to_string(i) + "]");
    kinds.push_back(5);
  }
  to.emplace_back("tokenizer.ggml.tokens", std::move(tokens));
  to.emplace_back("tokenizer.ggml.token_type", std::move(kinds));
  to.emplace_back("tokenizer.ggml.bos_token_id", uint32_t{0});
  to.emplace_back("tokenizer.ggml.eos_token_id", uint32_t{1});
  to.emplace_back("tokenizer.ggml.add_bos_token", true);
  to.emplace_back("tokenizer.chat_template", kTemplate);
}

/// A BPE of bytes.
GgufMetadata with_bytes(GgufMetadata keys, const char* pre) {
  keys.emplace_back("tokenizer.ggml.model", "gpt2");
  keys.emplace_back("tokenizer.ggml.pre", pre);
  keys.emplace_back("tokenizer.ggml.merges", std::vector<std::string>{"t h", "th e", "Ġ the"});
  add_tokens({"<s>", "</s>", "t", "h", "e", "Ġ", "th", "the", "Ġthe", "a", "c"},
             {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4}, keys);
  return keys;
}

/// A BPE of SentencePiece.
GgufMetadata with_pieces(GgufMetadata keys) {
  keys.emplace_back("tokenizer.ggml.model", "llama");
  keys.emplace_back("tokenizer.ggml.scores", std::vector<float>(static_cast<size_t>(kRows), -1));
  add_tokens({"<s>", "</s>", "<unk>", "▁", "t", "h", "th", "▁th", "<0x0A>", "<0xC3>"},
             {3, 3, 2, 1, 1, 1, 1, 1, 6, 6}, keys);
  return keys;
}

GgufMetadata bert_keys() {
  GgufMetadata keys{{"general.architecture", "bert"},
                    {"bert.vocab_size", static_cast<uint32_t>(kRows)},
                    {"bert.embedding_length", uint32_t{32}},
                    {"bert.feed_forward_length", uint32_t{32}},
                    {"bert.block_count", uint32_t{1}},
                    {"bert.context_length", uint32_t{16}},
                    {"bert.attention.head_count", uint32_t{2}},
                    {"bert.attention.layer_norm_epsilon", 1e-12F},
                    {"bert.attention.causal", false},
                    {"bert.pooling_type", uint32_t{2}},
                    {"tokenizer.ggml.model", "bert"},
                    {"tokenizer.ggml.token_type_count", uint32_t{2}},
                    {"tokenizer.ggml.normalizer.lowercase", true},
                    {"tokenizer.ggml.seperator_token_id", uint32_t{1}},
                    {"tokenizer.ggml.unknown_token_id", uint32_t{2}},
                    {"tokenizer.ggml.padding_token_id", uint32_t{3}},
                    {"tokenizer.ggml.mask_token_id", uint32_t{4}}};
  add_tokens({"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "▁the", "▁t", "h", "e", "▁é", "<new>"},
             {3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 4}, keys);
  return keys;
}

GgufMetadata t5_keys() {
  GgufMetadata keys{{"general.architecture", "t5"},
                    {"t5.vocab_size", static_cast<uint32_t>(kRows)},
                    {"t5.embedding_length", uint32_t{32}},
                    {"t5.feed_forward_length", uint32_t{32}},
                    {"t5.block_count", uint32_t{1}},
                    {"t5.decoder_block_count", uint32_t{1}},
                    {"t5.context_length", uint32_t{16}},
                    {"t5.attention.head_count", uint32_t{2}},
                    {"t5.attention.key_length", uint32_t{16}},
                    {"t5.attention.value_length", uint32_t{16}},
                    {"t5.attention.relative_buckets_count", uint32_t{8}},
                    {"t5.attention.layer_norm_rms_epsilon", 1e-6F},
                    {"t5.decoder_start_token_id", uint32_t{3}},
                    {"tokenizer.ggml.model", "t5"},
                    {"tokenizer.ggml.scores", std::vector<float>(static_cast<size_t>(kRows), -1)},
                    {"tokenizer.ggml.add_space_prefix", true},
                    {"tokenizer.ggml.remove_extra_whitespaces", true},
                    {"tokenizer.ggml.add_eos_token", true},
                    {"tokenizer.ggml.unknown_token_id", uint32_t{2}},
                    {"tokenizer.ggml.padding_token_id", uint32_t{3}}};
  add_tokens({"<s>", "</s>", "<unk>", "<pad>", "▁", "t", "h", "e", "▁the", "<extra_id_0>"},
             {3, 3, 2, 3, 1, 1, 1, 1, 1, 4}, keys);
  return keys;
}

/// Adds tensors of ones.
class Ones {
 public:
  explicit Ones(TensorMap& tensors) : tensors_(tensors) {}
  void add(const std::string& name, std::vector<int64_t> shape) const {
    tensors_.emplace(name, torch::ones(shape));
  }
  void linear(const std::string& name, int64_t out) const { add(name + ".weight", {out, 32}); }
  void with_bias(const std::string& name, std::vector<int64_t> shape) const {
    const int64_t out = shape.front();
    add(name + ".weight", std::move(shape));
    add(name + ".bias", {out});
  }

 private:
  TensorMap& tensors_;
};

TensorMap bert_tensors() {
  TensorMap tensors;
  const Ones ones(tensors);
  ones.linear("token_embd", kRows);
  ones.linear("position_embd", 16);
  ones.linear("token_types", 2);
  ones.with_bias("token_embd_norm", {32});
  for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"})
    ones.with_bias("blk.0." + std::string(name), {32, 32});
  for (const char* const name : {"attn_output_norm", "layer_output_norm"})
    ones.with_bias("blk.0." + std::string(name), {32});
  return tensors;
}

TensorMap t5_tensors() {
  TensorMap tensors;
  const Ones ones(tensors);
  ones.linear("token_embd", kRows);
  for (const std::string side : {"enc", "dec"}) {
    ones.add(side + ".output_norm.weight", {32});
    std::vector<std::string> attentions = {"attn"};
    if (side == "dec") attentions.push_back("cross_attn");
    for (const auto& attention : attentions) {
      for (const std::string part : {"q", "k", "v", "o"})
        ones.linear(side + ".blk.0." + attention + "_" + part, 32);
      ones.add(side + ".blk.0." + attention + "_norm.weight", {32});
    }
    ones.add(side + ".blk.0.attn_rel_b.weight", {8, 2});
    ones.add(side + ".blk.0.ffn_norm.weight", {32});
    for (const std::string part : {"ffn_gate", "ffn_up", "ffn_down"})
      ones.linear(side + ".blk.0." + part, 32);
  }
  return tensors;
}

TensorMap llama_tensors(bool has_bias) {
  TensorMap tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors.emplace(name, torch::ones(shape));
  };
  add("token_embd.weight", {kRows, 32});
  add("output_norm.weight", {32});
  for (const char* const norm : {"attn_norm", "ffn_norm"})
    add("blk.0." + std::string(norm) + ".weight", {32});
  const auto linear = [&](const char* name, int64_t out, bool bias = false) {
    add("blk.0." + std::string(name) + ".weight", {out, 32});
    if (bias) add("blk.0." + std::string(name) + ".bias", {out});
  };
  linear("attn_q", 32, has_bias);
  linear("attn_k", 16, has_bias);
  linear("attn_v", 16, has_bias);
  for (const char* const name : {"attn_output", "ffn_gate", "ffn_up", "ffn_down"}) linear(name, 32);
  return tensors;
}

void use(const fs::path& path) {
  const GgufFile file(path);
  for (const auto& name : file.names()) file.tensor(name).sum();
  const auto tokenizer = open_stored_tokenizer(path);
  tokenizer->decode(tokenizer->encode("the thé </s>\n"));
  try {
    open_stored_chat_template(path).render({{"messages", {{{"role", "user"}, {"content", "the"}}}}});
  } catch (const DataError&) {
    // A template is not needed.
  }
  const auto model = open_foreign(path);
  for (const auto& name : model.tensors->names()) model.tensors->tensor(name).sum();
}

std::string file_of(const testing::TempDir& work, const GgufMetadata& keys, const TensorMap& tensors,
                    const BlockType& format) {
  const auto plain = work / "gguf.safetensors", path = work / "seed.gguf";
  save_safetensors(plain, tensors);
  const SafetensorsFile source(plain);
  write_gguf(path, keys, source, [&](const std::string& name) -> const BlockType& {
    return source.shape(name).size() == 2 ? format : plain_block_type(torch::kFloat);
  });
  use(path);  // a seed that is refused tests nothing
  return read_file(path);
}

}  // namespace

std::vector<Target> gguf_targets(const testing::TempDir& work) {
  const auto& plain = plain_block_type(torch::kFloat);
  auto scaled = llama_tensors(false);
  scaled.emplace("rope_freqs.weight", torch::ones({8}));
  Seeds seeds = {
      file_of(work, with_bytes(llama_keys("llama"), "llama-bpe"), llama_tensors(false), plain),
      file_of(work, with_pieces(llama_keys("llama")), llama_tensors(false), q8_0_block_type()),
      file_of(work, with_bytes(llama_keys("llama"), "gpt-2"), scaled, plain_block_type(torch::kHalf)),
      file_of(work, bert_keys(), bert_tensors(), plain),
      file_of(work, t5_keys(), t5_tensors(), plain),
      file_of(work, with_bytes(llama_keys("qwen2"), "qwen2"), llama_tensors(true), q8_0_block_type())};
  // 4 billion layers in a list.
  auto endless = seeds.back();
  const auto at = endless.find("block_count") + 15;
  endless.replace(at, 4, 4, '\xFF');
  seeds.push_back(std::move(endless));
  return {{"gguf", "a GGUF file: its keys, tensors, tokenizer, chat template, and the model of it",
           mutate_gguf, [&work](const std::string& input) { use(work.write("fuzzed.gguf", input)); }, seeds}};
}

}  // namespace zoo::fuzz
