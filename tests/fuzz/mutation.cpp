#include "tests/fuzz/mutation.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace zoo::fuzz {
namespace {

// How often a mutation makes an input large, and how large at most. Rarely, because large inputs are slow.
constexpr int64_t kSeldom = 400;
constexpr size_t kLarge = size_t{2} << 20;

template <class List>
const auto& pick(CounterRandom& random, const List& list) {
  return list[static_cast<size_t>(random.below(static_cast<int64_t>(std::size(list))))];
}

/// 0 … size: a place between two bytes.
size_t place(CounterRandom& random, size_t size) {
  return static_cast<size_t>(random.below(static_cast<int64_t>(size) + 1));
}

bool one_in(CounterRandom& random, int64_t n) { return random.below(n) == 0; }

/// Mostly small, seldom up to `most`.
size_t length(CounterRandom& random, size_t most) {
  const auto cap = static_cast<int64_t>(one_in(random, 4) ? most : std::min<size_t>(most, 16));
  return cap == 0 ? 0 : static_cast<size_t>(1 + random.below(cap));
}

uint64_t interesting_number(CounterRandom& random) {
  constexpr std::array<uint64_t, 22> numbers = {0,
                                                1,
                                                2,
                                                3,
                                                7,
                                                8,
                                                15,
                                                16,
                                                0x7F,
                                                0x80,
                                                0xFF,
                                                0x100,
                                                0x7FFF,
                                                0xFFFF,
                                                0x10000,
                                                0x7FFFFFFF,
                                                0x80000000,
                                                0xFFFFFFFF,
                                                0x100000000,
                                                1000000,
                                                0x7FFFFFFFFFFFFFFF,
                                                0xFFFFFFFFFFFFFFFF};
  if (one_in(random, 4)) return random.next() >> random.below(64);
  return pick(random, numbers) + static_cast<uint64_t>(random.below(3)) - 1;
}

void change_bytes(CounterRandom& random, std::string& bytes, const Seeds& seeds) {
  const size_t at = place(random, bytes.size());
  const auto part = [&] { return bytes.substr(at, length(random, bytes.size() - at)); };
  switch (random.below(10)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      return;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random.below(256));
      return;
    case 2: {
      uint64_t number = interesting_number(random);
      const size_t width = size_t{1} << random.below(4);
      if (one_in(random, 4)) number = __builtin_bswap64(number) >> (64 - 8 * width);
      if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &number, width);
      return;
    }
    case 3: {
      const size_t width = size_t{1} << random.below(4);
      if (at + width > bytes.size()) return;
      uint64_t number = 0;
      std::memcpy(&number, bytes.data() + at, width);
      number += static_cast<uint64_t>(random.below(33)) - 16;
      std::memcpy(bytes.data() + at, &number, width);
      return;
    }
    case 4:
      bytes.resize(at);
      return;
    case 5:
      bytes.erase(at, length(random, bytes.size() - at));
      return;
    case 6:
      bytes.insert(at, part());
      return;
    case 7: {
      std::string more(length(random, 64), '\0');
      for (char& c : more) c = static_cast<char>(random.below(256));
      bytes.insert(at, more);
      return;
    }
    case 8: {
      const auto& other = pick(random, seeds);
      bytes = bytes.substr(0, at) + other.substr(place(random, other.size()));
      return;
    }
    default: {
      const auto copy = part();
      const size_t most = one_in(random, kSeldom) ? kLarge : 256;
      std::string many;
      while (!copy.empty() && many.size() < most) many += copy;
      bytes.insert(at, many);
      return;
    }
  }
}

std::string changed_bytes(CounterRandom& random, std::string bytes, const Seeds& seeds) {
  for (int64_t n = 1 + random.below(4); n > 0; --n) change_bytes(random, bytes, seeds);
  return bytes;
}

/// Words, numbers, quoted texts, runs of blanks, single signs.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
           (c & 0x80) != 0;
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (is_word(text[at])) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (text[at] == ' ' || text[at] == '\n') {
      while (end < text.size() && text[end] == text[at]) ++end;
    }
    tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

std::string odd_token(CounterRandom& random) {
  using namespace std::string_view_literals;
  constexpr auto odd = std::to_array<std::string_view>({"0",
                                                        "1",
                                                        "-1",
                                                        "null",
                                                        "true",
                                                        "false",
                                                        "[]",
                                                        "{}",
                                                        "\"\"",
                                                        "[",
                                                        "]",
                                                        "{",
                                                        "}",
                                                        ",",
                                                        ":",
                                                        "'",
                                                        "\"",
                                                        "\n",
                                                        " ",
                                                        "\t",
                                                        "- ",
                                                        "? ",
                                                        "&a ",
                                                        "*a",
                                                        "<<: *a",
                                                        "!!str ",
                                                        "!!binary ",
                                                        "!x ",
                                                        "| ",
                                                        "> ",
                                                        "#",
                                                        "%",
                                                        "---\n",
                                                        "...\n",
                                                        "~",
                                                        ".inf",
                                                        "-.inf",
                                                        ".nan",
                                                        "1e999",
                                                        "-1e999",
                                                        "1e18",
                                                        "1e-400",
                                                        "0x10",
                                                        "1_000",
                                                        "1.5",
                                                        "1e6",
                                                        "1048576",
                                                        "65536",
                                                        "9223372036854775807",
                                                        "-9223372036854775808",
                                                        "9223372036854775808",
                                                        "18446744073709551615",
                                                        "18446744073709551616",
                                                        "1000000000",
                                                        "2147483647",
                                                        "2147483648",
                                                        "4294967296",
                                                        "\\u0000",
                                                        "\\ud800",
                                                        "\"\\u0000\"",
                                                        "\"\\ud800\"",
                                                        "\"\\ud83d\\ude00\"",
                                                        "\0"sv,
                                                        "\xFF",
                                                        "\xC0\x80",
                                                        "\xED\xA0\x80",
                                                        "\xEF\xBB\xBF",
                                                        "\xF4\x90\x80\x80",
                                                        "\x1B[31m",
                                                        "\x7F",
                                                        "\r",
                                                        "\xE2\x80\xA8",
                                                        "auto",
                                                        "extends: ",
                                                        "extends: .\n",
                                                        "type: ",
                                                        "name: ",
                                                        "../",
                                                        "/dev/null"});
  if (one_in(random, 5)) return fmt::format("{}", static_cast<int64_t>(interesting_number(random)));
  if (one_in(random, 12)) return fmt::format("{}", static_cast<double>(interesting_number(random)) / 3);
  return std::string(pick(random, odd));
}

/// `text` n times, where n is small or, seldom, makes up a large input.
std::string repeated(CounterRandom& random, const std::string& text) {
  const size_t most = one_in(random, kSeldom) ? kLarge : 4096;
  const size_t times = std::min(most / std::max<size_t>(text.size(), 1), size_t{1} << random.below(22));
  std::string many;
  many.reserve(times * text.size());
  for (size_t i = 0; i < times; ++i) many += text;
  return many;
}

std::string nest(CounterRandom& random) {
  constexpr auto opening =
      std::to_array<std::string_view>({"[", "{", "[{", "{\"a\":", "[{\"a\":", "- ", "a: ", "? ", "{a: ", "[[",
                                       "&a [*a, ", "(", "\"", "{}", "[],", "0,"});
  return repeated(random, std::string(pick(random, opening)));
}

void change_tokens(CounterRandom& random, std::vector<std::string>& tokens, const Seeds& seeds) {
  if (tokens.empty()) return tokens.push_back(odd_token(random));
  const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(tokens.size())));
  const auto here = tokens.begin() + static_cast<ptrdiff_t>(at);
  switch (random.below(11)) {
    case 0:
    case 1:
      tokens[at] = odd_token(random);
      return;
    case 2: {  // a number: the most telling token
      std::vector<size_t> numbers;
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (std::isdigit(static_cast<unsigned char>(tokens[i].front())) != 0) numbers.push_back(i);
      }
      if (!numbers.empty()) tokens[pick(random, numbers)] = odd_token(random);
      return;
    }
    case 3:
      tokens.erase(here, here + static_cast<ptrdiff_t>(length(random, tokens.size() - at)));
      return;
    case 4:
      tokens.insert(here, odd_token(random));
      return;
    case 5:
      std::swap(tokens[at], tokens[static_cast<size_t>(random.below(static_cast<int64_t>(tokens.size())))]);
      return;
    case 6:
      tokens.insert(here, tokens[at]);
      return;
    case 7: {  // a word from anywhere
      const auto others = tokens_of(pick(random, seeds));
      if (!others.empty()) tokens[at] = pick(random, others);
      return;
    }
    case 8: {  // some lines from another seed
      const auto& other = pick(random, seeds);
      tokens.insert(here, other.substr(place(random, other.size()), length(random, 400)));
      return;
    }
    case 9:
      tokens.insert(here, nest(random));
      return;
    default:
      tokens[at] = repeated(random, tokens[at]);
      return;
  }
}

std::string changed_text(CounterRandom& random, std::string text, const Seeds& seeds) {
  if (one_in(random, 10)) return changed_bytes(random, std::move(text), seeds);
  auto tokens = tokens_of(text);
  for (int64_t n = 1 + random.below(4); n > 0; --n) change_tokens(random, tokens, seeds);
  std::string result;
  for (const auto& token : tokens) result += token;
  if (one_in(random, 20)) result.resize(place(random, result.size()));
  return result;
}

/// A field of a message.
struct Field {
  uint64_t tag = 0;
  uint64_t value = 0;
  std::string bytes;
};

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool get_varint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// The fields of a message; false if it is none.
bool parse(std::string_view in, std::vector<Field>& fields) {
  while (!in.empty()) {
    Field field;
    if (!get_varint(in, field.tag)) return false;
    const auto type = field.tag & 7;
    const size_t fixed = type == 1 ? 8 : type == 5 ? 4 : 0;
    if (type == 0) {
      if (!get_varint(in, field.value)) return false;
    } else if (fixed > 0 || type == 2) {
      uint64_t size = fixed;
      if (type == 2 && !get_varint(in, size)) return false;
      if (size > in.size()) return false;
      field.bytes = in.substr(0, static_cast<size_t>(size));
      in.remove_prefix(static_cast<size_t>(size));
    } else {
      return false;
    }
    fields.push_back(std::move(field));
  }
  return true;
}

std::string serialise(const std::vector<Field>& fields) {
  std::string out;
  for (const auto& field : fields) {
    put_varint(out, field.tag);
    if ((field.tag & 7) == 0) put_varint(out, field.value);
    if ((field.tag & 7) == 2) put_varint(out, field.bytes.size());
    out += field.bytes;
  }
  return out;
}

/// A precompiled_charsmap: a size, units of four bytes, and texts.
void change_charsmap(CounterRandom& random, std::string& blob, const Seeds& seeds) {
  if (blob.size() < 8 || one_in(random, 4)) return change_bytes(random, blob, seeds);
  uint32_t size = 0;
  std::memcpy(&size, blob.data(), 4);
  const size_t n_units = std::min<size_t>(size, blob.size() - 4) / 4;
  if (n_units == 0) return change_bytes(random, blob, seeds);
  for (int64_t n = 1 + random.below(3); n > 0; --n) {
    char* const at = blob.data() + 4 + 4 * static_cast<size_t>(random.below(static_cast<int64_t>(n_units)));
    uint32_t unit = 0;
    std::memcpy(&unit, at, 4);
    if (unit == 0 && !one_in(random, 8)) continue;  // most units are not used
    switch (random.below(4)) {
      case 0:
        unit ^= 1U << random.below(32);
        break;
      case 1:
        unit = (unit & 0x1FF) | static_cast<uint32_t>(random.below(1 << 22)) << 10;  // another offset
        break;
      case 2:
        unit ^= 0x100;  // has a value, or has none
        break;
      default:
        unit = static_cast<uint32_t>(random.next());
    }
    std::memcpy(at, &unit, 4);
  }
}

std::string changed_message(CounterRandom& random, const std::string& message, const Seeds& seeds, int depth);

void change_field(CounterRandom& random, std::vector<Field>& fields, const Seeds& seeds, int depth) {
  const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(fields.size())));
  const auto here = fields.begin() + static_cast<ptrdiff_t>(at);
  Field& field = fields[at];
  switch (random.below(10)) {
    case 0:
      fields.erase(here);
      return;
    case 1:
      fields.insert(here, Field(field));
      return;
    case 2:
      std::swap(field, fields[static_cast<size_t>(random.below(static_cast<int64_t>(fields.size())))]);
      return;
    case 3:
      field.tag = (field.tag & 7) | static_cast<uint64_t>(1 + random.below(50)) << 3;
      return;
    case 4: {
      std::vector<Field> others;
      if (parse(pick(random, seeds), others) && !others.empty())
        fields.insert(here, Field(pick(random, others)));
      return;
    }
    case 5:
      if (one_in(random, 8)) {
        const Field copy = field;
        const auto times = static_cast<size_t>(1 + random.below(one_in(random, 20) ? 20000 : 70));
        fields.insert(here, std::min(times, kLarge / (copy.bytes.size() + 8)), copy);
      }
      return;
    default:
      field.value = interesting_number(random);
      const auto number = field.tag >> 3;
      if (depth == 1 && number == 2 && field.bytes.size() > 64) {
        change_charsmap(random, field.bytes, seeds);
      } else if (depth == 0 && (number <= 3 || number == 5) && !one_in(random, 10)) {
        field.bytes = changed_message(random, field.bytes, seeds, 1);
      } else {
        change_bytes(random, field.bytes, seeds);
      }
  }
}

std::string changed_message(CounterRandom& random, const std::string& message, const Seeds& seeds,
                            int depth) {
  std::vector<Field> fields;
  if (!parse(message, fields)) return changed_bytes(random, message, seeds);
  for (int64_t n = 1 + random.below(3); n > 0; --n) {
    if (fields.empty())
      fields.push_back({.tag = static_cast<uint64_t>(random.below(48 * 8)), .value = 1, .bytes = {}});
    // The specs stand at the end of a model, after its many pieces.
    if (depth == 0 && fields.size() > 3 && one_in(random, 2)) {
      std::vector<Field> last(fields.end() - 3, fields.end());
      fields.resize(fields.size() - 3);
      change_field(random, last, seeds, depth);
      fields.insert(fields.end(), last.begin(), last.end());
    } else {
      change_field(random, fields, seeds, depth);
    }
  }
  return serialise(fields);
}

void put_check_sums(std::string& png) {
  constexpr size_t signature = 8, length_and_name = 8, check_sum = 4;
  for (size_t at = signature; at + length_and_name + check_sum <= png.size();) {
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(png[at + i]);
    if (size > png.size() - at - length_and_name - check_sum) return;
    const auto sum =
        ::crc32(0, reinterpret_cast<const Bytef*>(png.data()) + at + 4, static_cast<uInt>(size + 4));
    at += length_and_name + size;
    for (size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += check_sum;
  }
}

/// What a file of one member holds; empty if it is damaged or large.
std::string decompressed(std::string_view bytes) {
  constexpr int gzip_window = 15 + 16;
  std::string result(kLarge, '\0');
  z_stream stream{};
  if (::inflateInit2(&stream, gzip_window) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const bool is_whole = ::inflate(&stream, Z_FINISH) == Z_STREAM_END;
  result.resize(is_whole ? stream.total_out : 0);
  ::inflateEnd(&stream);
  return result;
}

constexpr std::string_view kSeparator = "\n%%%% the next file %%%%\n";

}  // namespace

std::string mutate_bytes(CounterRandom& random, const Seeds& seeds) {
  return changed_bytes(random, pick(random, seeds), seeds);
}

std::string mutate_text(CounterRandom& random, const Seeds& seeds) {
  return changed_text(random, pick(random, seeds), seeds);
}

std::string mutate_safetensors(CounterRandom& random, const Seeds& seeds) {
  const std::string& seed = pick(random, seeds);
  uint64_t size = 0;
  if (seed.size() < 8 || one_in(random, 5)) return changed_bytes(random, seed, seeds);
  std::memcpy(&size, seed.data(), 8);
  auto header = seed.substr(8, static_cast<size_t>(std::min<uint64_t>(size, seed.size() - 8)));
  auto data = seed.substr(8 + header.size());
  if (!one_in(random, 6)) header = changed_text(random, header, {header});
  if (one_in(random, 6)) data = changed_bytes(random, data, {data});
  size = one_in(random, 10) ? interesting_number(random) : header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

std::string mutate_png(CounterRandom& random, const Seeds& seeds) {
  auto bytes = changed_bytes(random, pick(random, seeds), seeds);
  if (!one_in(random, 6)) put_check_sums(bytes);
  return bytes;
}

std::string gzipped(std::string_view bytes) {
  constexpr int gzip_window = 15 + 16, memory = 8;
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string result(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  ::deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  ::deflateEnd(&stream);
  return result;
}

std::string mutate_gzip(CounterRandom& random, const Seeds& seeds) {
  const std::string& seed = pick(random, seeds);
  const auto content = decompressed(seed);
  if (content.empty() || one_in(random, 4)) return changed_bytes(random, seed, seeds);
  const auto changed = changed_bytes(random, content, {content});
  const size_t first = one_in(random, 3) ? place(random, changed.size()) : changed.size();
  auto file = gzipped(std::string_view(changed).substr(0, first));
  if (first < changed.size()) file += gzipped(std::string_view(changed).substr(first));
  return one_in(random, 6) ? changed_bytes(random, file, {file}) : file;
}

std::string mutate_protobuf(CounterRandom& random, const Seeds& seeds) {
  const std::string& seed = pick(random, seeds);
  return one_in(random, 8) ? changed_bytes(random, seed, seeds) : changed_message(random, seed, seeds, 0);
}

std::string mutate_files(CounterRandom& random, const Seeds& seeds) {
  const std::string& seed = pick(random, seeds);
  size_t n_files = 1;
  for (size_t at = seed.find(kSeparator); at != seed.npos; at = seed.find(kSeparator, at + 1)) ++n_files;
  auto files = split(seed, n_files);
  auto& file = files[static_cast<size_t>(random.below(static_cast<int64_t>(files.size())))];
  file = changed_text(random, file, {file});
  return join(files);
}

std::string join(const std::vector<std::string>& files) {
  std::string joined;
  for (const auto& file : files) joined.append(&file == &files.front() ? "" : kSeparator).append(file);
  return joined;
}

std::vector<std::string> split(std::string_view joined, size_t n) {
  std::vector<std::string> files;
  while (files.size() + 1 < n) {
    const size_t at = joined.find(kSeparator);
    files.emplace_back(joined.substr(0, at));
    joined = at == joined.npos ? std::string_view() : joined.substr(at + kSeparator.size());
  }
  files.emplace_back(joined);
  return files;
}

}  // namespace zoo::fuzz
