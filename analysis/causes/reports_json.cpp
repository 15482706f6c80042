#include "analysis/causes/reports_json.h"

#include <tuple>

#include <nlohmann/json.hpp>

#include "base/named_enum.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

Json output_json(const Question& question, int64_t id) { return {{"id", id}, {"label", question.label(id)}}; }

Json cell_json(const LensCell& cell) {
  auto likeliest = Json::array();
  for (const auto& [id, label, probability] : cell.likeliest)
    likeliest.push_back({{"id", id}, {"label", label}, {"probability", probability}});
  return {{"likeliest", std::move(likeliest)},
          {"probability", cell.probability},
          {"rank", cell.rank},
          {"divergence", cell.divergence}};
}

}  // namespace

std::string to_json(const LensReport& report, const std::optional<LensContributions>& contributions) {
  const auto& question = report.question;
  Json document{{"name", report.name},
                {"lens", name_of(report.kind)},
                {"input", question.input},
                {"target", question.target},
                {"source_tokens", question.source_tokens},
                {"target_tokens", question.target_tokens},
                {"places", question.places},
                {"answers", Json::array()},
                {"depths", Json::array()}};
  for (const int64_t target : question.targets) document["answers"].push_back(output_json(question, target));
  for (size_t depth = 0; depth < report.depths.size(); ++depth) {
    auto cells = Json::array();
    for (const auto& cell : report.depths[depth]) cells.push_back(cell_json(cell));
    document["depths"].push_back({{"depth", depth}, {"cells", std::move(cells)}});
  }
  if (contributions) {
    auto parts = Json::array();
    for (const auto& [name, logit] : contributions->contributions.parts)
      parts.push_back({{"name", name}, {"logit", logit}});
    document["contributions"] = {{"place", contributions->place},
                                 {"output", output_json(question, contributions->output)},
                                 {"logit", contributions->contributions.logit},
                                 {"parts", std::move(parts)}};
    if (const auto& reason = contributions->reason; !reason.empty()) {
      document["contributions"]["logit"] = nullptr;
      document["contributions"]["reason"] = reason;
    }
  }
  return shown_json(document);
}

std::string to_json(const LensTraining& training) {
  Json document{{"name", training.name},
                {"data", training.data},
                {"steps", training.options.steps},
                {"lr", training.options.lr},
                {"seed", training.options.seed},
                {"trained_batches", training.trained_batches},
                {"held_out_batches", training.held_out_batches},
                {"held_out_places", training.held_out_places},
                {"depths", Json::array()}};
  for (size_t depth = 0; depth < training.after.size(); ++depth)
    document["depths"].push_back(
        {{"depth", depth}, {"plain", training.before[depth]}, {"trained", training.after[depth]}});
  return shown_json(document);
}

std::string to_json(const AblationReport& report) {
  Json document{{"name", report.name},
                {"data", report.data},
                {"by", name_of(report.by)},
                {"positions", report.positions},
                {"loss", report.whole.loss()}};
  if (report.has_accuracy) document["accuracy"] = report.whole.accuracy();
  document["targets"] = report.whole.targets;
  document["ablations"] = Json::array();
  for (const auto& [parts, score] : report.rows) {
    auto names = Json::array();
    for (const auto& part : parts) names.push_back(part.name());
    Json row{{"parts", std::move(names)}, {"loss", score.loss()}};
    if (report.has_accuracy) row["accuracy"] = score.accuracy();
    row["loss_change"] = score.loss() - report.whole.loss();
    if (report.has_accuracy) row["accuracy_change"] = score.accuracy() - report.whole.accuracy();
    document["ablations"].push_back(std::move(row));
  }
  return shown_json(document);
}

std::string to_json(const PatchReport& report) {
  const auto results = [](const std::vector<PatchReport::Result>& list) {
    auto json = Json::array();
    for (const auto& [patch, difference, recovered] : list) {
      Json row{{"part", patch.part.name()}};
      if (patch.position) row["position"] = *patch.position;
      row["difference"] = difference;
      row["recovered"] = recovered;
      json.push_back(std::move(row));
    }
    return json;
  };
  const auto tokens = [](const Question& question) {
    Json list = question.source_tokens;
    for (const auto& token : question.target_tokens) list.push_back(token);
    return list;
  };
  return shown_json(Json{{"name", report.name},
                         {"clean", report.clean.input},
                         {"corrupt", report.corrupt.input},
                         {"clean_tokens", tokens(report.clean)},
                         {"corrupt_tokens", tokens(report.corrupt)},
                         {"place", report.place},
                         {"answer", output_json(report.clean, report.answer)},
                         {"against", output_json(report.clean, report.against)},
                         {"clean_difference", report.clean_difference},
                         {"corrupt_difference", report.corrupt_difference},
                         {"heads", results(report.heads)},
                         {"positions", results(report.positions)}});
}

std::string to_json(const AttributionReport& report) {
  const auto& [options, question] = std::tie(report.options, report.question);
  const bool integrates = options.by == AttributionBy::integrated_gradients;
  Json document{{"name", report.name},
                {"input", question.input},
                {"target", question.target},
                {"by", name_of(options.by)}};
  if (integrates) {
    document["baseline"] = name_of(options.baseline);
    document["steps"] = options.steps;
  }
  document["place"] = report.place;
  document["answer"] = output_json(question, report.answer);
  document["against"] = options.against ? output_json(question, *options.against) : Json();
  document["score"] = report.score;
  if (integrates) document["baseline_score"] = report.baseline_score;
  document["sum"] = report.sum();
  if (integrates) document["completeness_error"] = report.completeness_error();
  if (const auto& picture = report.picture) {
    auto rows = Json::array();
    for (auto row = report.source.begin(); row != report.source.end(); row += picture->columns)
      rows.push_back(std::vector<double>(row, row + picture->columns));
    document["picture"] = {
        {"rows", picture->rows}, {"columns", picture->columns}, {"attributions", std::move(rows)}};
    return shown_json(document);
  }
  const auto tokens = [](const std::vector<std::string>& names, const std::vector<double>& values) {
    auto list = Json::array();
    for (size_t i = 0; i < values.size(); ++i)
      list.push_back({{"token", names.at(i)}, {"attribution", values[i]}});
    return list;
  };
  document["source"] = tokens(question.source_tokens, report.source);
  document["decoder"] = tokens(report.target_names, report.target);
  return shown_json(document);
}

std::string to_json(const HeadKindReport& report) {
  Json document{
      {"name", report.name}, {"length", report.length}, {"recall", nullptr}, {"heads", Json::array()}};
  if (report.recall) document["recall"] = *report.recall;
  for (const auto& head : report.heads) {
    document["heads"].push_back({{"kind", name_of(head.kind)},
                                 {"layer", head.layer},
                                 {"head", head.head},
                                 {"previous", head.previous},
                                 {"duplicate", head.duplicate},
                                 {"induction", head.induction}});
  }
  return shown_json(document);
}

}  // namespace zoo
