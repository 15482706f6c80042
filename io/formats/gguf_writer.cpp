#include "io/formats/gguf_writer.h"

#include <algorithm>
#include <type_traits>

#include <c10/util/accumulate.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "io/formats/gguf_file.h"
#include "io/output_file.h"

namespace zoo {
namespace {

constexpr uint64_t kAlignment = 32;  // what files without general.alignment have

/// The beginning of a file, in memory.
class HeaderWriter {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(uint64_t{value.size()});
    bytes_ += value;
  }
  void value(const GgufValue& value) {
    std::visit([&](const auto& one) { typed(one); }, value);
  }
  void align() { bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment); }
  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr uint32_t type_of(uint8_t) { return 0; }
  static constexpr uint32_t type_of(uint32_t) { return 4; }
  static constexpr uint32_t type_of(int32_t) { return 5; }
  static constexpr uint32_t type_of(float) { return 6; }
  static constexpr uint32_t type_of(bool) { return 7; }
  static constexpr uint32_t type_of(const std::string&) { return 8; }

  template <class T>
  void typed(const T& value) {
    number(type_of(value));
    plain(value);
  }
  template <class T>
  void typed(const std::vector<T>& values) {
    constexpr uint32_t list = 9;
    number(list);
    number(type_of(T{}));
    number(uint64_t{values.size()});
    for (const auto& value : values) plain(value);
  }
  template <class T>
  void plain(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      text(value);
    } else {
      number(value);
    }
  }

  std::string bytes_;
};

uint64_t stored_bytes(const std::vector<int64_t>& shape, const BlockType& format) {
  return static_cast<uint64_t>(c10::multiply_integers(shape) / format.elements) * format.bytes;
}

uint64_t padding_after(uint64_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

/// A stored tensor piece by piece, so that no second copy of it is in memory.
void write_tensor(OutputFile& file, const torch::Tensor& tensor, const BlockType& format) {
  constexpr int64_t most_elements = int64_t{1} << 20;  // whole blocks of every format
  const auto flat = tensor.reshape({-1});
  std::vector<std::byte> blocks;
  for (int64_t begin = 0; begin < flat.numel(); begin += most_elements) {
    const int64_t n = std::min(most_elements, flat.numel() - begin);
    const auto piece = flat.narrow(0, begin, n).to(format.type).contiguous();
    if (format.encode == nullptr) {
      file.write({static_cast<const char*>(piece.const_data_ptr()), piece.nbytes()});
      continue;
    }
    blocks.resize(static_cast<size_t>(n / format.elements) * format.bytes);
    format.encode({piece.const_data_ptr<float>(), static_cast<size_t>(n)}, blocks);
    file.write({reinterpret_cast<const char*>(blocks.data()), blocks.size()});
  }
}

}  // namespace

nlohmann::json as_json(const GgufMetadata& metadata) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [key, value] : metadata) {
    const auto add = [&result, &name = key](const auto& one) {
      if constexpr (std::is_same_v<std::decay_t<decltype(one)>, float>) {
        result[name] = shortest(one);
      } else {
        result[name] = one;
      }
    };
    std::visit(add, value);
  }
  return result;
}

void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata, const TensorSource& tensors,
                const std::function<const BlockType&(const std::string& name)>& format_of) {
  const auto names = tensors.names();
  HeaderWriter header;
  constexpr uint32_t magic = 0x46554747, version = 3;  // "GGUF"
  header.number(magic);
  header.number(version);
  header.number(uint64_t{names.size()});
  header.number(uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    header.text(key);
    header.value(value);
  }
  uint64_t offset = 0;
  for (const auto& name : names) {
    const auto& format = format_of(name);
    auto shape = tensors.shape(name);
    const auto size = stored_bytes(shape, format);
    std::ranges::reverse(shape);
    header.text(name);
    header.number(static_cast<uint32_t>(shape.size()));
    for (const int64_t length : shape) header.number(static_cast<uint64_t>(length));
    header.number(format.id);
    header.number(offset);
    offset += size + padding_after(size);
  }
  header.align();
  OutputFile file(path, OutputFile::Mode::kReplace);
  file.write(header.bytes());
  for (const auto& name : names) {
    const auto& format = format_of(name);
    write_tensor(file, tensors.tensor(name), format);
    file.write(std::string(padding_after(stored_bytes(tensors.shape(name), format)), '\0'));
  }
  file.sync();
  file.close();
}

}  // namespace zoo
