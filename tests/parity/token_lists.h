#pragma once
// Lists of texts and of token ids in reference cases: all of them joined, and their lengths.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "tests/parity/reference.h"
#include "tokenizers/tokenizer.h"

namespace zoo::testing {

inline TokenIds ids_in(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kInt64).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

inline std::vector<std::string> texts_in(const ReferenceCase& reference, const std::string& name,
                                         const std::string& lengths) {
  const auto bytes = reference.get(name).contiguous();
  const char* at = reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>());
  std::vector<std::string> texts;
  for (const int64_t length : ids_in(reference.get(lengths))) {
    texts.emplace_back(at, static_cast<size_t>(length));
    at += length;
  }
  return texts;
}

inline std::vector<TokenIds> lists_in(const ReferenceCase& reference, const std::string& name,
                                      const std::string& lengths) {
  const auto flat = ids_in(reference.get(name));
  auto at = flat.begin();
  std::vector<TokenIds> lists;
  for (const int64_t length : ids_in(reference.get(lengths))) {
    lists.emplace_back(at, at + length);
    at += length;
  }
  return lists;
}

}  // namespace zoo::testing
