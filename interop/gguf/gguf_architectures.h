#pragma once
// The architectures of llama.cpp that families of transformers have, as data that works in both directions:
// reading a file makes a config.json and the names of transformers from it, writing one does the reverse.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "io/formats/gguf_keys.h"

namespace zoo {

/// How a tensor of the file is made from those of transformers.
enum class StoredForm {
  same,
  transposed,        // a matrix
  interleaved_rows,  // llama's queries and keys: the rows i and i + Dh/2 of each head lie beside each other
  plus_one,          // gemma3's gains: 1 + weight
  scaled,            // an output of its own, made from embeddings whose logits are scaled
  flat,              // the row of a matrix that has one
  sections,          // all queries, then keys, then values, which take turns there by heads of keys
  experts,           // the matrices of all experts, which are tensors of their own there
  columns,           // the transposed matrices of all experts, which are one tensor there, too (gpt-oss)
  even_columns,      // every second column of that tensor, from the first one on, as a row: gates
  odd_columns,       // from the second one on: the others
  latent_keys,       // of each head of one matrix there the rows that make keys, transposed (DeepSeek)
  latent_values,     // and those that make values
};

/// What a model reads and writes.
enum class GgufBody {
  decoder,
  encoder,          // BERT: has no head, ends in vectors
  encoder_decoder,  // T5
};

/// The width of a head.
enum class GgufHeadWidth {
  of_model,  // D/H
  of_key,    // given by a key
  latent,    // several widths: GgufArchitecture::read and write know them (DeepSeek)
};

/// A key in the file, without the architecture before it, and in config.json.
struct GgufKeyName {
  std::string_view stored, foreign;
  enum class Kind { integer, number, flag } kind = Kind::integer;
};

/// The models of an architecture in which a module has a name.
///   simple  T5 without gates; Falcon with one norm in a layer
///   full    T5 with gates; Falcon with a norm for each sub-layer
enum class GgufVariant { any, simple, full };

/// The name of a module in the file, and its name in transformers. {} stands for the number of the layer, []
/// for the number of the expert.
struct GgufModuleName {
  std::string_view stored, foreign;
  StoredForm form = StoredForm::same;
  GgufVariant variant = GgufVariant::any;
  /// The names of its tensors in transformers: NAME.weight and NAME.bias, or NAME and NAME_bias.
  enum class Parts { of_module, of_tensor } parts = Parts::of_module;
  /// read: older files have it so.
  enum class Use { read_and_written, read } use = Use::read_and_written;
};

/// A key of config.json that llama.cpp has no key for, with the value that it takes for granted.
struct GgufFixedKey {
  std::string_view foreign;
  nlohmann::json value;
};

/// The keys of config.json for rotary positions. Without `theta` there are no such positions. `fraction` and
/// `width` say which part of a head is turned; without them whole heads are turned.
struct GgufRotaryNames {
  std::string_view theta = "", fraction = "", width = "";
  std::string_view local_theta = "";  // in layers with windows
};

/// Whether the output has a tensor of its own where it is the matrix of the embeddings.
enum class GgufTiedOutput {
  absent,
  often_there,   // in files of others
  always_there,  // llama.cpp wants it
};

/// What the tensors of a file say about its config.json.
struct GgufTensorFacts {
  bool is_tied = false;  // embeddings and output are one matrix
  std::set<std::string> names = {};
  /// The values of those that are about rotary positions, float32 (Dh/2).
  std::map<std::string, torch::Tensor> rotary = {};
  bool has(const std::string& name) const { return names.contains(name); }
};

struct GgufArchitecture {
  std::string name;        // general.architecture
  std::string model_type;  // of config.json
  std::string class_name;  // of transformers
  GgufBody body = GgufBody::decoder;
  std::vector<GgufKeyName> keys;
  std::vector<GgufModuleName> modules;
  /// Further keys of the config.json that is made from a file.
  std::vector<GgufFixedKey> fixed = {};
  GgufHeadWidth head_width = GgufHeadWidth::of_model;
  /// Number of heads of keys and values in config.json; empty: as many as there are of queries.
  std::string_view kv_heads = "";
  GgufRotaryNames rotary = {};
  GgufTiedOutput tied_output = GgufTiedOutput::absent;
  /// Whether a file is meant, where several families share a name; null: any.
  bool (*is_meant)(const GgufKeys& keys) = nullptr;
  /// What else the keys and tensors say of config.json, and the keys for it; null: nothing. `write` throws
  /// ConfigError for what llama.cpp does not run.
  void (*read)(const GgufKeys& from, const GgufTensorFacts& facts, nlohmann::json& config) = nullptr;
  void (*write)(const nlohmann::json& config, const GgufKeyWriter& to) = nullptr;
  /// Other classes of transformers that are written without their heads, and the modules of these heads.
  std::vector<std::string> headless_classes = {};
  std::vector<std::string_view> head_modules = {};
};

const std::vector<GgufArchitecture>& gguf_architectures();
/// The one of a file; null if its name is not known.
const GgufArchitecture* find_gguf_architecture(const GgufKeys& keys);
/// By its name; of several families with one name, the first.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
/// The one for a family of transformers; null if there is none.
const GgufArchitecture* gguf_architecture_of(std::string_view model_type);

/// Heads of attention, as config.json of the architecture's family describes them; 0 for what it lacks.
struct GgufHeads {
  int64_t d_model = 0, n_heads = 0, n_kv_heads = 0;
  int64_t width = 0;                         // of a head
  int64_t plain_width = 0, value_width = 0;  // latent attention: of keys without positions, of values
};
GgufHeads gguf_heads(const GgufArchitecture& architecture, const nlohmann::json& config);

/// What a config.json describes.
GgufVariant variant_of(const nlohmann::json& config);

/// Whether a tensor of transformers is a part of a head that the architecture leaves out.
bool is_in_left_out_head(const GgufArchitecture& architecture, std::string_view foreign);

}  // namespace zoo
