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
#include "io/gguf/gguf_writer.h"

namespace zoo {

/// How a tensor is stored, compared with the one of transformers.
enum class StoredForm {
  same,
  transposed,
  interleaved_rows,  // llama's queries and keys: the rows i and i + Dh/2 of each head lie beside each other
  plus_one,          // gemma3's gains: 1 + weight
};

/// A key in the file, without the architecture before it, and in config.json.
struct GgufKeyName {
  std::string_view stored, foreign;
  enum class Kind { integer, number } kind = Kind::integer;
};

/// A module in the file and in transformers; {} is the number of the layer.
struct GgufModuleName {
  std::string_view stored, foreign;
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
  std::vector<GgufKeyName> keys;
  std::vector<GgufModuleName> modules;
  /// Further keys of the config.json that is made from a file.
  std::vector<GgufFixedKey> fixed;
  /// `module`: in the file. `part`: "weight" or "bias".
  StoredForm (*form_of)(std::string_view module, std::string_view part);
  /// Whether heads may be of another width than D/H, and are given by their own key.
  bool has_head_width = true;
};

const std::vector<GgufArchitecture>& gguf_architectures();
/// By its name in the file; null if it is not known.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
/// The one for a family of transformers; null if there is none.
const GgufArchitecture* gguf_architecture_of(std::string_view model_type);

/// The names of a tensor on the other side; nothing if the architecture has no such tensor.
std::optional<std::string> foreign_tensor_name(const GgufArchitecture& architecture,
                                               const std::string& stored);
std::optional<std::string> stored_tensor_name(const GgufArchitecture& architecture,
                                              const std::string& foreign);

}  // namespace zoo
