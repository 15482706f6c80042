#include "io/formats/file_bytes.h"

#include <sys/stat.h>

#include "base/error.h"
#include "io/tensor_source.h"

namespace zoo {

FileBytes::FileBytes(const std::filesystem::path& path) : path_(path), file_(open_tensor_file(path)) {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) fail("its size is unknown");
  size_ = static_cast<uint64_t>(status.st_size);
}

void FileBytes::fail_with(std::string_view problem) const {
  throw CheckpointError(fmt::format("'{}': {}", path_.string(), problem));
}

void FileBytes::read(uint64_t begin, size_t size, void* to) const {
  size_t got = 0;
  try {
    got = read_at(file_, path_, begin, {static_cast<char*>(to), size});
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  if (got < size) fail("damaged: it ends at byte {}; was it cut?", begin + got);
}

std::string FileBytes::read(uint64_t begin, size_t size) const {
  if (!has(begin, size)) fail("damaged: it ends at byte {}; was it cut?", size_);
  std::string bytes(size, '\0');
  read(begin, size, bytes.data());
  return bytes;
}

uint64_t little_endian_number(std::string_view bytes, size_t begin, size_t n) {
  uint64_t value = 0;
  for (size_t i = n; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[begin + i]);
  return value;
}

}  // namespace zoo
