#pragma once
// Which residues of a protein touch, read from the attention maps of a language model of proteins (Rao et al.
// 2021).

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "checkpoints/run.h"
#include "data/images/image.h"
#include "models/contact_regression.h"
#include "models/model.h"

namespace zoo {

/// The contacts of one protein.
struct ContactMap {
  std::string text;                        // as given
  std::vector<std::string> residues = {};  // T labels of tokens
  /// (T, T) double on the CPU, symmetric: the probability that two residues touch.
  torch::Tensor probabilities = {};
};

/// Two residues, from 0, and how likely they touch.
struct Contact {
  int64_t first, second;  // first < second
  double probability;
};

/// The maps of all layers and heads of the encoder over a protein, (M, T, T), without special tokens. Every
/// layer must have maps. Throws DataError as attention_report(). `labels`: gets those of the T tokens.
torch::Tensor residue_maps(Model& model, const Tokenizer& tokenizer, const std::string& text,
                           std::vector<std::string>& labels);

/// Throws UsageError if layers of the run have no maps.
void require_maps(const Run& run);

/// The contacts that the run's regression reads from all maps of its model, as EsmModel.predict_contacts() of
/// transformers. Throws UsageError if the run has no regression (model.contact_regression) or if its layers
/// have no maps; DataError as attention_report().
ContactMap contact_map(const Run& run, const std::string& text);
/// The same with another regression, which has as many maps.
ContactMap contact_map(const Run& run, const std::string& text, const ContactRegressionImpl& regression);

/// The run's own regression. Throws UsageError if it has none.
const ContactRegressionImpl& regression_of(const Run& run);

/// The `most` likeliest pairs that are at least `separation` residues apart, the likeliest first.
std::vector<Contact> likeliest_contacts(const ContactMap& map, int64_t separation, int64_t most);

/// One document, as `zoo contacts --json` prints it: text; residues, a list of strings; contacts, T × T
/// probabilities rounded to six digits after the point.
std::string to_json(const ContactMap& map);

/// The map as a grey picture, a square of `scale` pixels for each pair; black: they touch.
Image picture_of(const ContactMap& map, int64_t scale);

}  // namespace zoo
