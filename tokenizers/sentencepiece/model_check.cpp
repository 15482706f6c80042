#include "tokenizers/sentencepiece/model_check.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/sentencepiece/charsmap.h"
#include "tokenizers/sentencepiece/wire_format.h"

namespace zoo {
namespace {

constexpr size_t kLargestModel = size_t{64} << 20;
constexpr size_t kMostPieces = 1'000'000;
constexpr size_t kLongestText = 1024;  // bytes of a piece
/// User-defined pieces of which each is a prefix of the next: the library collects them in an array of 64.
constexpr size_t kMostNested = 64;

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
enum class ModelType { unigram = 1, bpe = 2, word = 3, character = 4 };

struct Piece {
  std::string_view text;
  float score = 0;
  PieceType type = PieceType::normal;
};

struct TrainerSpec {
  ModelType type = ModelType::unigram;
  bool byte_fallback = false;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw DataError(fmt::format(format, std::forward<Args>(args)...));
}

/// Calls `take(field)` with each field of a message. A field for which `is_single` holds may occur once: if
/// it is repeated, the library would take the last one or mix them.
template <class IsSingle, class Take>
void for_each_field(std::string_view message, IsSingle is_single, Take take) {
  WireReader reader(message);
  std::bitset<64> seen;  // no field of these messages that counts has a higher number
  while (const auto field = reader.next()) {
    if (is_single(field->number)) {
      if (seen.test(field->number)) fail("field {} occurs twice", field->number);
      seen.set(field->number);
    }
    take(*field);
  }
}

void require(const WireField& field, WireField::Type type) {
  if (field.type != type) fail("field {} is of the wrong type", field.number);
}

template <class Enum>
Enum as_enum(const WireField& field, Enum last) {
  require(field, WireField::Type::varint);
  if (field.value < 1 || field.value > static_cast<uint64_t>(last))
    fail("{} is no value of field {}", field.value, field.number);
  return static_cast<Enum>(field.value);
}

std::string_view as_text(const WireField& field) {
  require(field, WireField::Type::bytes);
  if (field.bytes.size() > kLongestText) fail("a text has more than {} bytes", kLongestText);
  if (field.bytes.find('\0') != field.bytes.npos || find_invalid_utf8(field.bytes))
    fail("\"{}\" is not a text", excerpt(field.bytes));
  return field.bytes;
}

Piece read_piece(std::string_view message) {
  constexpr uint32_t text = 1, score = 2, type = 3;
  Piece piece;
  for_each_field(
      message, [](uint32_t number) { return number <= type; },
      [&](const WireField& field) {
        switch (field.number) {
          case text:
            piece.text = as_text(field);
            break;
          case score:
            require(field, WireField::Type::fixed32);
            piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
            break;
          case type:
            piece.type = as_enum(field, PieceType::byte);
            break;
          default:
            break;
        }
      });
  if (piece.text.empty()) fail("a piece has no text");
  if (!std::isfinite(piece.score)) fail("the score of \"{}\" is not a number", excerpt(piece.text));
  return piece;
}

TrainerSpec read_trainer_spec(std::string_view message) {
  constexpr uint32_t model_type = 3, byte_fallback = 35, unk_surface = 44, unk_piece = 45, pad_piece = 48;
  const auto is_text = [](uint32_t number) {
    return number == unk_surface || (number >= unk_piece && number <= pad_piece);
  };
  TrainerSpec spec;
  for_each_field(
      message,
      [&](uint32_t number) { return number == model_type || number == byte_fallback || is_text(number); },
      [&](const WireField& field) {
        if (field.number == model_type) spec.type = as_enum(field, ModelType::character);
        if (is_text(field.number)) as_text(field);
        if (field.number != byte_fallback) return;
        require(field, WireField::Type::varint);
        spec.byte_fallback = field.value != 0;
      });
  return spec;
}

void check_normalizer_spec(std::string_view message) {
  constexpr uint32_t precompiled_charsmap = 2;
  for_each_field(
      message, [](uint32_t number) { return number == precompiled_charsmap; },
      [](const WireField& field) {
        if (field.number != precompiled_charsmap) return;
        require(field, WireField::Type::bytes);
        if (!field.bytes.empty()) check_charsmap(field.bytes);
      });
}

/// N of "<0xN>", where N are two digits as the library writes them.
std::optional<uint8_t> byte_of(std::string_view text) {
  uint8_t byte = 0;
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  if (std::from_chars(text.data() + 3, text.data() + 5, byte, 16).ptr != text.data() + 5) return std::nullopt;
  return text == fmt::format("<0x{:02X}>", byte) ? std::optional(byte) : std::nullopt;
}

void check_bytes(const std::vector<Piece>& pieces, const TrainerSpec& spec) {
  std::set<uint8_t> found;
  for (const auto& piece : pieces) {
    if (piece.type != PieceType::byte) continue;
    const auto byte = byte_of(piece.text);
    if (!spec.byte_fallback || !byte) fail("\"{}\" cannot stand for a byte", excerpt(piece.text));
    found.insert(*byte);
  }
  if (spec.byte_fallback && found.size() != 256)
    fail("not every byte has a piece, although byte_fallback is set");
}

void check_nesting(const std::vector<Piece>& pieces) {
  std::vector<std::string_view> symbols;
  for (const auto& piece : pieces) {
    if (piece.type == PieceType::user_defined) symbols.push_back(piece.text);
  }
  std::ranges::sort(symbols);
  std::vector<std::string_view> prefixes;  // of the current one, itself included
  for (const auto symbol : symbols) {
    while (!prefixes.empty() && !symbol.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(symbol);
    if (prefixes.size() > kMostNested) fail("too many of its user-defined pieces begin alike");
  }
}

void check_pieces(const std::vector<Piece>& pieces, const TrainerSpec& spec) {
  std::unordered_set<std::string_view> normal, reserved;
  size_t n_unknown = 0;
  for (const auto& piece : pieces) {
    const bool is_normal = piece.type == PieceType::normal || piece.type == PieceType::user_defined ||
                           piece.type == PieceType::unused;
    if (!(is_normal ? normal : reserved).insert(piece.text).second)
      fail("\"{}\" is a piece twice", excerpt(piece.text));
    n_unknown += piece.type == PieceType::unknown ? 1 : 0;
  }
  if (n_unknown != 1) fail("{} pieces stand for unknown text, not one", n_unknown);
  if (normal.empty()) fail("it has no pieces of text");
  check_bytes(pieces, spec);
  check_nesting(pieces);
}

std::string checked(std::string_view model) {
  constexpr uint32_t pieces_field = 1, trainer_spec = 2, normalizer_spec = 3, denormalizer_spec = 5;
  if (model.size() > kLargestModel) fail("it has more than {} MiB", kLargestModel >> 20);
  std::string needed;
  std::vector<Piece> pieces;
  TrainerSpec spec;
  for_each_field(
      model,
      [](uint32_t number) {
        return number == trainer_spec || number == normalizer_spec || number == denormalizer_spec;
      },
      [&](const WireField& field) {
        switch (field.number) {
          case pieces_field:
            require(field, WireField::Type::bytes);
            if (pieces.size() == kMostPieces) fail("it has more than {} pieces", kMostPieces);
            pieces.push_back(read_piece(field.bytes));
            break;
          case trainer_spec:
            require(field, WireField::Type::bytes);
            spec = read_trainer_spec(field.bytes);
            break;
          case normalizer_spec:
          case denormalizer_spec:
            require(field, WireField::Type::bytes);
            check_normalizer_spec(field.bytes);
            break;
          default:
            return;
        }
        needed += field.whole;
      });
  if (pieces.empty()) fail("it has no pieces");
  check_pieces(pieces, spec);
  return needed;
}

}  // namespace

std::string checked_sentencepiece_model(std::string_view model) {
  try {
    return checked(model);
  } catch (const DataError& error) {
    throw DataError(fmt::format("not a SentencePiece model: {}", error.what()));
  }
}

}  // namespace zoo
