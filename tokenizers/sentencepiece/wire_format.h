#pragma once
// The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), as far as models of
// SentencePiece need it: no groups.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace zoo {

/// One field of a message.
struct WireField {
  enum class Type { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint32_t number = 0;
  Type type = Type::varint;
  uint64_t value = 0;      // of a number; of fixed32 the lower half
  std::string_view bytes;  // of a string or of a message in this one
  std::string_view whole;  // the field as it stands in the message
};

/// Reads the fields of a message in order. The views point into the message.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// The next field; nothing at the end. Throws DataError for what is not a message.
  std::optional<WireField> next() {
    if (rest_.empty()) return std::nullopt;
    const std::string_view before = rest_;
    const uint64_t tag = varint();
    WireField field;
    constexpr uint64_t most = (uint64_t{1} << 29) - 1;
    if (tag >> 3 == 0 || tag >> 3 > most) fail();
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<WireField::Type>(tag & 7);
    switch (field.type) {
      case WireField::Type::varint:
        field.value = varint();
        break;
      case WireField::Type::fixed64:
        field.value = fixed(8);
        break;
      case WireField::Type::bytes:
        field.bytes = take(varint());
        break;
      case WireField::Type::fixed32:
        field.value = fixed(4);
        break;
      default:
        fail();
    }
    field.whole = before.substr(0, before.size() - rest_.size());
    return field;
  }

 private:
  [[noreturn]] static void fail() {
    throw DataError("it is cut off or not in the format of Protocol Buffers");
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail();
    const auto bytes = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  uint64_t fixed(size_t size) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : take(size)) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  /// Seven bits a byte, the lowest first. Ten bytes hold 64 bits.
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      if (shift == 63 && byte > 1) fail();
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
};

}  // namespace zoo
