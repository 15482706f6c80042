// /fold: the structure of a protein.

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/structures/ca_trace.h"
#include "data/structures/formats.h"
#include "data/structures/sequences.h"
#include "pages/json.h"
#include "pages/structures/predicted_structure.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/request_fields.h"
#include "serving/api/routes.h"

namespace zoo {
namespace {

/// The letters of a request. Throws ApiError.
std::string letters_of(const std::string& text, int64_t most) {
  constexpr size_t blanks = 2;  // of a text for each residue
  if (text.size() > blanks * static_cast<size_t>(most) + 1)
    throw ApiError(400, fmt::format("sequence has more than {} residues", most), "sequence");
  std::string letters;
  try {
    letters = checked_sequence(text, "sequence");
  } catch (const DataError& error) {
    throw ApiError(400, error.what(), "sequence");
  }
  if (std::ssize(letters) > most) {
    throw ApiError(400,
                   fmt::format("sequence has {} residues, and {} are the most that are folded here",
                               letters.size(), most),
                   "sequence");
  }
  return letters;
}

ModelAnswer fold_one(const ServedModel& model, const NamedSequence& sequence, std::optional<int64_t> passes) {
  const auto folded = fold_chain(model.model(), sequence, passes);
  auto trace = ca_trace(folded.structure, "sequence");
  return CountedAnswer{
      .document = {{"model", model.card().id},
                   {"mean_plddt", or_null(folded.mean_plddt)},
                   {"ptm", or_null(folded.tm_score)},
                   {"pdb", to_pdb(folded.structure)},
                   {"structure", structure_data(shown_prediction(sequence.name, folded, std::move(trace)))}},
      .tokens_in = std::ssize(sequence.letters)};
}

void fold(const ApiContext& context, const ApiCall& call) {
  constexpr double most_recycles = 16;
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  NamedSequence sequence{
      .name = "sequence",
      .letters = letters_of(fields.required_text("sequence"), context.options.limits.most_residues)};
  const auto recycles = fields.integer("recycles", Limits::between(0, most_recycles));
  fields.refuse_others();
  const auto passes = recycles ? std::optional(*recycles + 1) : std::nullopt;
  answer_with_model(context, call, model, Ability::fold,
                    [sequence = std::move(sequence), passes](const ServedModel& served) {
                      return fold_one(served, sequence, passes);
                    });
}

}  // namespace

std::vector<Route> fold_routes() { return {{.method = "POST", .path = "/fold", .answer = fold}}; }

}  // namespace zoo
