#pragma once
// What `zoo config KEY` shows.

#include <memory>
#include <string>

#include "io/config/config_file.h"

namespace zoo {

std::unique_ptr<detail::ConfigText> make_key_writer(std::string key);

/// The part of config_reference() that is about `key`: a dotted key, a group with its keys, or the last words
/// of a dotted key ("lr"), which stand for all keys that end so. Empty if there is no such key.
template <class Config>
std::string reference_of_key(const std::string& key) {
  Config defaults;
  const auto writer = make_key_writer(key);
  describe(*writer, defaults);
  return writer->text();
}

}  // namespace zoo
