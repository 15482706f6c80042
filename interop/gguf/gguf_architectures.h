#pragma once
// The architectures of llama.cpp that families of transformers have, as data that works in both directions:
// reading a file makes a config.json and the names of transformers from it, writing one does the reverse.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/gguf/gguf_keys.h"
#include "io/formats/gguf_writer.h"

namespace zoo {

/// How a tensor is stored, compared with the one of transformers.
enum class StoredForm {
  same,
  transposed,
  interleaved_rows,  // llama's queries and keys: the rows i and i + Dh/2 of each head lie beside each other
  plus_one,          // gemma3's gains: 1 + weight
  scaled,            // an output of its own, made from embeddings whose logits are scaled
};

/// The parts that a model has, and with them the keys that describe it.
enum class GgufBody {
  plain_decoder,    // positions are learned: GPT-2
  rotary_decoder,   // Llama and its kindred
  encoder,          // BERT: has no head, ends in vectors
  encoder_decoder,  // T5
};

/// A key in the file, without the architecture before it, and in config.json.
struct GgufKeyName {
  std::string_view stored, foreign;
  enum class Kind { integer, number } kind = Kind::integer;
};

/// The feed-forward networks in which a module has a name.
enum class GgufGate { any, absent, present };

/// A module in the file and in transformers; {} is the number of the layer.
struct GgufModuleName {
  std::string_view stored, foreign;
  GgufGate gate = GgufGate::any;
};

/// A key of config.json that llama.cpp has no key for, with the value that it takes for granted.
struct GgufFixedKey {
  std::string_view foreign;
  nlohmann::json value;
};

struct GgufArchitecture {
  std::string name;        // general.architecture
  std::string model_type;  // of config.json
  std::string class_name;  // of transformers
  GgufBody body = GgufBody::rotary_decoder;
  std::vector<GgufKeyName> keys;
  std::vector<GgufModuleName> modules;
  /// Further keys of the config.json that is made from a file.
  std::vector<GgufFixedKey> fixed;
  /// `module`: in the file. `part`: "weight" or "bias".
  StoredForm (*form_of)(std::string_view module, std::string_view part);
  /// Whether heads may be of another width than D/H, and are given by their own key.
  bool has_head_width = true;
  /// Other classes of transformers that are written without their heads, and the modules of these heads.
  std::vector<std::string> headless_classes = {};
  std::vector<std::string_view> head_modules = {};
};

const std::vector<GgufArchitecture>& gguf_architectures();
/// By its name in the file; null if it is not known.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
/// The one for a family of transformers; null if there is none.
const GgufArchitecture* gguf_architecture_of(std::string_view model_type);

/// Whether the feed-forward networks of a config.json have a gate, where the architecture leaves this open.
GgufGate gate_of(const nlohmann::json& config);

/// The names of a tensor on the other side; nothing if the architecture has no such tensor. `gate`: of the
/// model.
std::optional<std::string> foreign_tensor_name(const GgufArchitecture& architecture, GgufGate gate,
                                               const std::string& stored);
std::optional<std::string> stored_tensor_name(const GgufArchitecture& architecture, GgufGate gate,
                                              const std::string& foreign);
/// Whether a tensor of transformers is a part of a head that the architecture leaves out.
bool is_in_left_out_head(const GgufArchitecture& architecture, std::string_view foreign);

}  // namespace zoo
