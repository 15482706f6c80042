#include "interop/foreign_families.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/families/families.h"
#include "interop/nanogpt.h"
#include "io/config/config_file.h"

namespace zoo {

const std::vector<ForeignFamily>& foreign_families() {
  static const std::vector<ForeignFamily> families = {
      gpt2_foreign(),       llama_foreign(),       mistral_foreign(),     qwen2_foreign(),
      qwen3_foreign(),      olmo2_foreign(),       olmoe_foreign(),       mixtral_foreign(),
      qwen2_moe_foreign(),  qwen3_moe_foreign(),   gemma2_foreign(),      gemma3_foreign(),
      gpt_neox_foreign(),   gptj_foreign(),        opt_foreign(),         bloom_foreign(),
      mpt_foreign(),        falcon_foreign(),      phi_foreign(),         phi3_foreign(),
      olmo_foreign(),       granite_foreign(),     smollm3_foreign(),     starcoder2_foreign(),
      cohere_foreign(),     cohere2_foreign(),     glm_foreign(),         glm4_foreign(),
      bert_foreign(),       roberta_foreign(),     distilbert_foreign(),  longformer_foreign(),
      big_bird_foreign(),   t5_foreign(),          bart_foreign(),        marian_foreign(),
      esm_foreign(),        vit_foreign(),         ijepa_foreign(),       detr_foreign(),
      whisper_foreign(),    xlm_roberta_foreign(), mt5_foreign(),         mbart_foreign(),
      m2m_100_foreign(),    albert_foreign(),      electra_foreign(),     mpnet_foreign(),
      modernbert_foreign(), gpt_oss_foreign(),     deepseek_v2_foreign(), deepseek_v3_foreign(),
      deberta_v2_foreign(), nomic_bert_foreign(),  deit_foreign(),        dinov2_foreign(),
      clip_foreign(),       siglip_foreign(),      wav2vec2_foreign(),    hubert_foreign(),
      beit_foreign(),       pegasus_foreign()};
  return families;
}

const ForeignFamily* find_foreign_family(std::string_view model_type) {
  const auto& families = foreign_families();
  static const ForeignFamily only_read = nanogpt_foreign();
  if (model_type == only_read.model_type) return &only_read;
  const auto found = std::ranges::find(families, model_type, &ForeignFamily::model_type);
  return found == families.end() ? nullptr : &*found;
}

Experiment checked_experiment(const Experiment& experiment, const std::string& place) {
  try {
    return parse_complete_experiment(dump_config(experiment), place);
  } catch (const ConfigError& error) {
    // The line and the column are of a text that nobody sees.
    std::string_view problem = error.what();
    if (problem.starts_with(place)) {
      problem.remove_prefix(place.size());
      problem.remove_prefix(std::min(problem.find_first_not_of(" :0123456789"), problem.size()));
      throw CheckpointError(fmt::format("{}: it describes what cannot be built: {}", place, problem));
    }
    throw CheckpointError(fmt::format("it describes a model that cannot be built: {}", problem));
  }
}

}  // namespace zoo
