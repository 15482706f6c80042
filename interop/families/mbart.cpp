// Encoder-decoders like BART with norms before the sub-layers: mBART (Liu et al. 2020), M2M100 (Fan et al.
// 2021) with NLLB (NLLB Team 2022), and Pegasus (Zhang et al. 2020).

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "layers/attention/positions.h"
#include "tasks/text/text_classification.h"

namespace zoo {
namespace {

/// The first position of a token is row 2 of the table.
constexpr int64_t kFirstPosition = 2;

void read_mbart(ForeignConfig& from, Experiment& to) {
  read_bart_like(from, {.norms = NormPlacement::pre}, to);
  auto& model = to.model;
  model.position = Position::learned;
  model.position_offset = kFirstPosition;
  model.embedding_norm = true;
  from.require("normalize_embedding", true);
  from.require("static_position_embeddings", false);
  if (to.task.type == "text_classification")
    to.task = Selection("text_classification", TextClassificationConfig{.answer = ClassAnswer::head});
}

void read_m2m_100(ForeignConfig& from, Experiment& to) {
  read_bart_like(from,
                 {.vocab_size = 128112,
                  .norms = NormPlacement::pre,
                  .scales_embeddings = true,
                  .defaults = {.activation = "relu", .attention_dropout = 0.1}},
                 to);
  auto& model = to.model;
  model.position = Position::sinusoidal;
  model.sinusoid_layout = SinusoidLayout::half_closed;
  model.position_offset = kFirstPosition;
  model.output_bias = false;
  if (model.d_model % 2 != 0 || model.d_model < 4)
    from.fail("d_model", "only even widths from 4 on are supported");
  from.require("normalize_embedding", false);
  from.require("static_position_embeddings", true);
}

/// Its table of sinusoids is in its files, in their type. Programs may have trained it: transformers does
/// once it has opened a file.
void read_pegasus(ForeignConfig& from, Experiment& to) {
  read_bart_like(from, {.norms = NormPlacement::pre}, to);
  auto& model = to.model;
  model.position = Position::sinusoidal;
  model.sinusoid_layout = SinusoidLayout::half;
  model.stored_sinusoids = true;
  from.require("normalize_embedding", false);
  from.require("static_position_embeddings", true);
}

}  // namespace

ForeignFamily pegasus_foreign() {
  return {.model_type = "pegasus",
          .doc = "Pegasus (Zhang et al. 2020): summaries",
          .classes = {{"PegasusForConditionalGeneration", "text_to_text"}, {"PegasusModel", "text_to_text"}},
          .read = read_pegasus,
          .write = write_bart,
          .rules = bart_rules};
}

ForeignFamily mbart_foreign() {
  return {.model_type = "mbart",
          .doc = "mBART (Liu et al. 2020) and mBART-50 (Tang et al. 2020): BART for many languages",
          .classes = {{"MBartForConditionalGeneration", "text_to_text"},
                      {"MBartModel", "text_to_text"},
                      {"MBartForSequenceClassification", "text_classification"}},
          .read = read_mbart,
          .write = write_bart,
          .rules = bart_rules};
}

ForeignFamily m2m_100_foreign() {
  return {.model_type = "m2m_100",
          .doc = "M2M100 (Fan et al. 2021) and NLLB (NLLB Team 2022): translation between many languages",
          .classes = {{"M2M100ForConditionalGeneration", "text_to_text"}, {"M2M100Model", "text_to_text"}},
          .read = read_m2m_100,
          .write = write_bart,
          .rules = bart_rules};
}

}  // namespace zoo
