#include "io/terminal_guard.h"

#include <unistd.h>

#include <iostream>
#include <string>
#include <string_view>

#include "base/text.h"

namespace zoo {
namespace {

bool put(std::streambuf& sink, std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return sink.sputn(text.data(), size) == size;
}

std::unique_ptr<PrintableBuffer> guard(std::ostream& stream, int descriptor) {
  if (::isatty(descriptor) == 0) return nullptr;
  auto buffer = std::make_unique<PrintableBuffer>(*stream.rdbuf());
  stream.rdbuf(buffer.get());
  return buffer;
}

}  // namespace

PrintableBuffer::~PrintableBuffer() { put(sink_, printable(begun_)); }

PrintableBuffer::int_type PrintableBuffer::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char c = traits_type::to_char_type(byte);
  return xsputn(&c, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  begun_.append(text, static_cast<size_t>(size));
  const size_t whole = begun_.size() - incomplete_utf8(begun_);
  const bool written = put(sink_, printable(std::string_view(begun_).substr(0, whole)));
  begun_.erase(0, whole);
  return written ? size : 0;
}

TerminalGuard::TerminalGuard() : plain_out_(std::cout.rdbuf()), plain_err_(std::cerr.rdbuf()) {
  out_ = guard(std::cout, STDOUT_FILENO);
  err_ = guard(std::cerr, STDERR_FILENO);
}

TerminalGuard::~TerminalGuard() {
  std::cout.rdbuf(plain_out_);
  std::cerr.rdbuf(plain_err_);
}

}  // namespace zoo
