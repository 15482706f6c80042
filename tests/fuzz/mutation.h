#pragma once
// Inputs that are nearly right: seeds with some changes that know the format.

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace zoo::fuzz {

using Seeds = std::vector<std::string>;

/// A mutated copy of one of the seeds, which are not empty. Equal random numbers give equal inputs.
using Mutate = std::string (*)(CounterRandom& random, const Seeds& seeds);

/// Bits, bytes, numbers of any width, parts that are cut out, doubled, taken from another seed.
std::string mutate_bytes(CounterRandom& random, const Seeds& seeds);
/// JSON and YAML: tokens are replaced, doubled, deleted, swapped, nested, taken from another seed.
std::string mutate_text(CounterRandom& random, const Seeds& seeds);
/// Header and data of a safetensors file; mostly the length of the header is right.
std::string mutate_safetensors(CounterRandom& random, const Seeds& seeds);
/// The chunks of a PNG file; mostly all check sums are right.
std::string mutate_png(CounterRandom& random, const Seeds& seeds);
/// What is compressed with gzip, in one member or in two; mostly all check sums are right. Other seeds as
/// mutate_bytes().
std::string mutate_gzip(CounterRandom& random, const Seeds& seeds);
/// `bytes` compressed with gzip.
std::string gzipped(std::string_view bytes);
/// Fields of a message of Protocol Buffers and of the messages within it; mostly all lengths are right.
std::string mutate_protobuf(CounterRandom& random, const Seeds& seeds);
/// Keys, names and shapes of a GGUF file; mostly their number is right.
std::string mutate_gguf(CounterRandom& random, const Seeds& seeds);
/// A line and a JSON document. Mostly the document stays JSON: keys are deleted or taken from other seeds,
/// values become others, of any type. There must be a seed with a document.
std::string mutate_request(CounterRandom& random, const Seeds& seeds);
/// One of several files, which join() put into one text.
std::string mutate_files(CounterRandom& random, const Seeds& seeds);

/// Files in one text, and back; split() gives at most `n` and at least `n` texts.
std::string join(const std::vector<std::string>& files);
std::vector<std::string> split(std::string_view joined, size_t n);

}  // namespace zoo::fuzz
