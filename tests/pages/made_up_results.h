#pragma once
// Whole documents as `zoo compare` writes them (docs/comparison.md), from formulas instead of training. They
// test the pages.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pages/tables/best_values.h"
#include "statistics/paired_test.h"

namespace zoo::testing {

using Json = nlohmann::ordered_json;

/// A number between -1 and 1 that looks random, the same for the same arguments.
inline double wobble(int64_t a, int64_t b = 0, int64_t c = 0) {
  const double x = std::sin(static_cast<double>(a) * 12.9898 + static_cast<double>(b) * 78.233 +
                            static_cast<double>(c) * 37.719) *
                   43758.5453;
  return 2 * (x - std::floor(x)) - 1;
}

/// The properties of a made-up run.
struct MadeUpRun {
  std::string name;
  std::string architecture = "decoder";
  double quality = 1.6;   // final metric
  double scatter = 0.02;  // of the seeds
  int64_t n_layers = 4, d_model = 128;
  std::vector<std::string> source = {}, target = {};  // tokens of the attention maps; empty: no maps
  int failed = 0;                                     // the last seeds end in NaN
  std::string variant = {};                           // of a grid
  Json grid = Json::object();                         // key → value
  std::string baseline = {};                          // default: the first run
  int dull = 0;                                       // the first seeds never learn
};

struct MadeUpComparison {
  std::string name, title, folklore, measured;
  std::string task, metric, label;
  bool percent = false;  // if true, higher is better
  int64_t steps = 400, seeds = 3;
  Json variants = Json::array(), grid = Json::array();
  std::string note = {};
  std::vector<MadeUpRun> runs = {};
  int64_t examples = 0;  // that each run is better at than its baseline, and worse at
};

/// Weights (H, T, S) of rows that sum to 999: head 0 looks back, head 1 at the first token, others anywhere.
inline Json made_up_layer(int64_t H, int64_t T, int64_t S, bool causal, int64_t salt) {
  Json heads = Json::array();
  for (int64_t h = 0; h < H; ++h) {
    Json head = Json::array();
    for (int64_t t = 0; t < T; ++t) {
      std::vector<double> row(static_cast<size_t>(S));
      double sum = 0;
      for (int64_t s = 0; s < S; ++s) {
        const double place = static_cast<double>(t * S) / static_cast<double>(T);
        const double nearness = h == 0             ? -std::abs(place - 1 - static_cast<double>(s))
                                : h == 1 && s == 0 ? 2.5
                                                   : 0;
        const double score = causal && s > t ? -99 : 1.6 * nearness + 1.4 * wobble(t + salt, s, h);
        sum += row[static_cast<size_t>(s)] = std::exp(score);
      }
      for (const double weight : row) head.push_back(std::lround(999 * weight / sum));
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

inline Json made_up_heads(const std::string& kind, int64_t layers, int64_t H, int64_t salt) {
  Json heads = Json::array();
  const bool crosses = kind == "cross";
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t h = 0; h < H; ++h) {
      const auto share = [&](int64_t what) { return 0.3 + 0.25 * wobble(layer + salt, h, what); };
      heads.push_back({{"kind", kind},
                       {"layer", layer},
                       {"head", h},
                       {"entropy", 2.1 + wobble(layer + salt, h)},
                       {"distance", crosses ? Json() : Json(3 + 2 * wobble(salt, layer, h))},
                       {"first", share(1)},
                       {"previous", crosses ? Json() : Json(share(2))},
                       {"itself", crosses ? Json() : Json(share(3))},
                       {"alignment_error", crosses ? Json(share(4) / 2) : Json()}});
    }
  return heads;
}

/// The text of SentencePiece tokens.
inline std::string written(const std::vector<std::string>& tokens) {
  constexpr std::string_view kSpace = "▁";
  std::string text;
  for (const std::string_view token : tokens) {
    if (token.front() == '<') continue;
    const bool begins_word = token.starts_with(kSpace);
    if (begins_word && !text.empty()) text += ' ';
    text += token.substr(begins_word ? kSpace.size() : 0);
  }
  return text;
}

inline Json made_up_attention(const MadeUpRun& run, int64_t salt) {
  if (run.source.empty()) return nullptr;
  constexpr int64_t kHeads = 4;
  const bool answers = !run.target.empty();
  const auto S = static_cast<int64_t>(run.source.size()), T = static_cast<int64_t>(run.target.size());
  Json maps = Json::array(), heads = Json::array(), rollout = Json::array();
  const auto add = [&](const std::string& kind, int64_t rows, int64_t columns, bool causal) {
    Json layers = Json::array();
    for (int64_t i = 0; i < run.n_layers; ++i)
      layers.push_back(made_up_layer(kHeads, rows, columns, causal, salt + i));
    maps.push_back({{"kind", kind}, {"layers", std::move(layers)}});
    for (auto& head : made_up_heads(kind, run.n_layers, kHeads, salt)) heads.push_back(std::move(head));
    rollout.push_back({{"kind", kind}, {"rows", made_up_layer(1, rows, columns, causal, salt + 50)[0]}});
  };
  if (answers || run.architecture == "encoder") add("encoder", S, S, false);
  if (run.architecture == "decoder") add("decoder", S, S, true);
  if (answers) add("decoder", T, T, true);
  if (answers) add("cross", T, S, false);
  std::vector<std::string> next;
  if (answers) next.assign(run.target.begin() + 1, run.target.end());
  if (answers) next.push_back("<eos>");
  return {{"text", written(run.source)}, {"target", answers ? Json(written(run.target)) : Json()},
          {"source_tokens", run.source}, {"target_tokens", run.target},
          {"target_next", next},         {"maps", std::move(maps)},
          {"heads", std::move(heads)},   {"rollout", std::move(rollout)}};
}

/// One seed: its results, and its curves over steps, tokens, FLOPs and seconds.
inline Json made_up_seed(const MadeUpComparison& comparison, const MadeUpRun& run, int64_t number,
                         int64_t seed, bool failed) {
  const double parameters = 12.0 * static_cast<double>(run.n_layers * run.d_model * run.d_model);
  const int64_t last = failed ? comparison.steps / 2 : comparison.steps;
  const bool dull = seed <= run.dull;
  const double final = (dull ? 3.6 : run.quality) + (dull ? 0.002 : run.scatter) * wobble(number, seed);
  const double start = comparison.percent ? 0.06 : 5.2;
  const auto metric_at = [&](int64_t step) {
    const double share = std::exp(-6.0 * static_cast<double>(step) / static_cast<double>(comparison.steps));
    const double end = share * 0.0025;  // the share that is left at the last step
    return final + (start - final) * (share - end) + run.scatter * 0.3 * wobble(step, number, seed) * share;
  };
  const auto loss_at = [&](int64_t step) {
    return comparison.percent ? 2.4 * (1 - metric_at(step)) + 0.05 : 1.9 * metric_at(step);
  };
  Json curve = {{"step", Json::array()},    {"tokens", Json::array()},     {"flops", Json::array()},
                {"seconds", Json::array()}, {"valid_loss", Json::array()}, {"metric", Json::array()}};
  Json train = {{"step", Json::array()},    {"tokens", Json::array()},     {"flops", Json::array()},
                {"seconds", Json::array()}, {"train_loss", Json::array()}, {"grad_norm", Json::array()},
                {"lr", Json::array()}};
  const auto count = [&](Json& lists, int64_t step) {
    const double tokens = static_cast<double>(step) * 2048;
    lists["step"].push_back(step);
    lists["tokens"].push_back(static_cast<int64_t>(tokens));
    lists["flops"].push_back(6 * parameters * tokens);
    lists["seconds"].push_back(static_cast<double>(step) * parameters * 5e-8 *
                               (1 + 0.02 * wobble(seed, number)));
  };
  for (int64_t step = 0; step <= last; step += comparison.steps / 20) {
    count(curve, step);
    curve["valid_loss"].push_back(loss_at(step));
    curve["metric"].push_back(metric_at(step));
  }
  for (int64_t step = 1; step <= last; step += std::max<int64_t>(1, comparison.steps / 400)) {
    count(train, step);
    const bool broken = failed && step + comparison.steps / 400 > last;
    train["train_loss"].push_back(broken ? Json()
                                         : Json(loss_at(step) * (1 + 0.05 * wobble(step, seed, number))));
    const double done = static_cast<double>(step) / static_cast<double>(comparison.steps);
    train["grad_norm"].push_back(0.4 + std::exp(-8 * done) + 0.2 * wobble(step, number, seed));
    train["lr"].push_back(1e-3 * std::min(done * 10, 1 - 0.9 * done));
  }
  const double tokens = static_cast<double>(last) * 2048;
  return {{"seed", seed},
          {"run", fmt::format("runs/{}-{}", run.name, seed)},
          {"end", failed ? "failed" : "all_steps"},
          {"error", failed ? Json("the loss is not a number at step " + std::to_string(last)) : Json()},
          {"steps", last},
          {"tokens", static_cast<int64_t>(tokens)},
          {"flops", 6 * parameters * tokens},
          {"seconds", curve["seconds"].back()},
          {"valid_loss", failed ? Json() : Json(loss_at(last))},
          {"valid", failed ? Json() : Json{{"loss", loss_at(last)}, {comparison.metric, metric_at(last)}}},
          {"learnt", failed || run.variant.empty() ? Json() : Json(!dull)},
          {"best_step", failed ? Json() : Json(last)},
          {"peak_memory_bytes", static_cast<int64_t>(parameters * 16 + 3e7)},
          {"curve", std::move(curve)},
          {"train_curve", std::move(train)}};
}

inline Json made_up_scaling(const MadeUpRun& run) {
  Json scaling = Json::array();
  const auto D = static_cast<double>(run.d_model);
  const auto add = [&](const char* part, const char* order, double power, auto cost) {
    Json lengths, flops, seconds, bytes;
    for (int64_t n = 64; n <= 2048; n *= 2) {
      lengths.push_back(n);
      flops.push_back(cost(static_cast<double>(n)));
      seconds.push_back(cost(static_cast<double>(n)) * 2e-11 + 2e-5);
      bytes.push_back(static_cast<int64_t>(static_cast<double>(n) * D * 4 * power));
    }
    scaling.push_back({{"part", part},
                       {"order", order},
                       {"lengths", lengths},
                       {"flops", flops},
                       {"seconds", seconds},
                       {"bytes", bytes},
                       {"flops_exponent", power},
                       {"flops_exponent_low", power - 0.1},
                       {"flops_exponent_high", power + 0.1},
                       {"seconds_exponent", power - 0.08},
                       {"seconds_exponent_low", power - 0.2},
                       {"seconds_exponent_high", power + 0.04},
                       {"bytes_exponent", 1},
                       {"bytes_exponent_low", nullptr},
                       {"bytes_exponent_high", nullptr}});
  };
  add("attention", "O(n²d)", 1.74, [D](double n) { return 8 * n * D * D + 4 * n * n * D; });
  add("training", "O(n²d)", 1.77, [D](double n) { return 24 * n * D * D + 12 * n * n * D; });
  add("feed-forward", "O(nd²)", 1, [D](double n) { return 16 * n * D * D; });
  add("norm", "O(nd)", 1, [D](double n) { return 7 * n * D; });
  add("model", "O(n²d + nd²)", 1.31,
      [D, &run](double n) { return static_cast<double>(run.n_layers) * (24 * n * D * D + 4 * n * n * D); });
  return scaling;
}

inline Json made_up_lengths(double quality, double half) {
  Json list = Json::array();
  for (const int64_t length : {32, 64, 128, 256}) {
    const double mean = quality * (1 + 0.0004 * static_cast<double>(std::abs(length - 64)));
    list.push_back({{"length", length},
                    {"mean", mean},
                    {"low", half > 0 ? Json(mean - half) : Json()},
                    {"high", half > 0 ? Json(mean + half) : Json()}});
  }
  return list;
}

/// Gives a run the experts of two layers and their balance in training; one expert has no token.
inline void add_experts(Json& run, const std::vector<int64_t>& tokens) {
  run["experts"] = {{{"place", "layers.0.feed_forward"}, {"tokens", tokens}},
                    {{"place", "layers.1.feed_forward"}, {"tokens", tokens}}};
  std::ranges::reverse(run["experts"][1]["tokens"]);
  for (auto& seed : run["seeds"]) {
    auto& train = seed["train_curve"];
    for (size_t i = 0; i < train["step"].size(); ++i) {
      const double done = static_cast<double>(i) / static_cast<double>(train["step"].size());
      train["experts_busiest"].push_back(1 + std::exp(-3 * done));
      train["experts_idle"].push_back(0.25 * (1 - done));
      train["router_entropy"].push_back(0.6 + 0.3 * done);
    }
  }
}

/// The confusion matrix of a classifier. The second class is never right where there are more than two.
inline Json made_up_confusion(const std::vector<std::string>& labels, int64_t salt) {
  Json counts = Json::array();
  for (size_t i = 0; i < labels.size(); ++i) {
    Json row = Json::array();
    for (size_t j = 0; j < labels.size(); ++j) {
      const double noise = 1 + wobble(salt, static_cast<int64_t>(i), static_cast<int64_t>(j));
      row.push_back(std::lround(i == j ? (i == 1 && labels.size() > 2 ? 0 : 60 + 20 * noise) : 7 * noise));
    }
    counts.push_back(std::move(row));
  }
  return {{"labels", labels}, {"counts", std::move(counts)}};
}

inline Json made_up_run(const MadeUpComparison& comparison, const MadeUpRun& run, int64_t number) {
  const double parameters = 12.0 * static_cast<double>(run.n_layers * run.d_model * run.d_model);
  Json seeds = Json::array();
  std::vector<double> finals;
  const bool all_dull = run.dull >= comparison.seeds;
  for (int64_t i = 0; i < comparison.seeds; ++i) {
    seeds.push_back(made_up_seed(comparison, run, number, i + 1, i + run.failed >= comparison.seeds));
    const auto& valid = seeds.back()["valid"];
    if (!valid.is_null() && (all_dull || i >= run.dull))
      finals.push_back(valid[comparison.metric].get<double>());
  }
  Json metric;  // null where every seed failed
  double half = 0;
  if (!finals.empty()) {
    const auto found = mean_interval(finals);
    const auto known = [](const auto& value) { return value ? Json(*value) : Json(); };
    metric = {{"mean", found.mean},
              {"low", known(found.low)},
              {"high", known(found.high)},
              {"deviation", known(found.deviation)},
              {"n", found.n}};
    half = found.high.value_or(found.mean) - found.mean;
  }
  const bool reads_only = run.architecture == "encoder";
  Json samples = Json::array();
  const std::vector<std::string> inputs = {"Love is", "The best way to predict the future is <script>",
                                           "Nothing is so admirable in politics as", "Once upon a time",
                                           "A computer without COBOL and Fortran"};
  for (size_t i = 0; i < inputs.size(); ++i)
    samples.push_back(
        {{"input", inputs[i]},
         {"output", comparison.percent
                        ? (static_cast<size_t>(number) + i) % 3 == 0 ? "politics" : "love"
                        : fmt::format("{} a matter of {} layers, and of {} dimensions.\nSo they say.",
                                      inputs[i], run.n_layers, run.d_model)},
         {"reference", comparison.percent ? Json(i % 2 == 0 ? "love" : "politics") : Json()}});
  return {{"name", run.name},
          {"variant", run.variant.empty() ? run.name : run.variant},
          {"grid", run.grid},
          {"architecture", run.architecture},
          {"config",
           {{"model.architecture", run.architecture},
            {"model.n_layers", std::to_string(run.n_layers)},
            {"model.d_model", std::to_string(run.d_model)},
            {"training.steps", std::to_string(comparison.steps)}}},
          {"parameters", static_cast<int64_t>(parameters)},
          {"sequence_length", 64},
          {"flops_per_token", 2 * parameters * 1.1},
          {"activation_bytes_per_token", run.d_model * run.n_layers * 68},
          {"weight_bytes", static_cast<int64_t>(parameters) * 4},
          {"cache_bytes_per_token", run.d_model * run.n_layers * 8},
          {"state_bytes", 0},
          {"guess", {{"uniform", 9.2}, {"unigram", 6.9}}},
          {"metric", std::move(metric)},
          {"baseline", nullptr},
          {"versus_baseline", nullptr},
          {"lengths", made_up_lengths(run.quality, half)},
          {"seeds", std::move(seeds)},
          {"speed",
           {{"train_tokens_per_second", 2.2e10 / parameters},
            {"prompt_tokens_per_second", 7.1e10 / parameters},
            {"decode_tokens_per_second", reads_only ? Json() : Json(4.3e8 / parameters + 100)},
            {"first_token_seconds", reads_only ? Json() : Json(parameters * 4e-9)},
            {"ranges", {{"train_tokens_per_second", {2.1e10 / parameters, 2.3e10 / parameters}}}}}},
          {"peak_memory_bytes", finals.empty() ? Json() : Json(static_cast<int64_t>(parameters * 16 + 3e7))},
          {"scaling", made_up_scaling(run)},
          {"samples", std::move(samples)},
          {"attention", made_up_attention(run, number)}};
}

/// Slices of texts, one of them without a test.
inline Json made_up_slices() {
  const auto slice = [](const char* kind, const char* name, double value, const char* verdict) {
    return Json{{"kind", kind},
                {"name", name},
                {"share", 0.25},
                {"value", value},
                {"n", 40},
                {"baseline_value", 2.5},
                {"difference", value - 2.5},
                {"low", value - 2.6},
                {"high", value - 2.4},
                {"p", 0.01},
                {"p_corrected", 0.04},
                {"verdict", verdict}};
  };
  return Json::array(
      {slice("characters", "digits", 2.25, "better"),
       slice("characters", "white space", 2.5, "same"),
       slice("length", "words of <b>1</b> to 3 characters", 2.625, "undecided"),
       {{"kind", "position"}, {"name", "first quarter of the window"}, {"share", 0.5}, {"value", 3.0}}});
}

/// Examples at which a run is better, and worse, than its baseline.
inline Json made_up_examples(const MadeUpComparison& comparison) {
  Json better = Json::array(), worse = Json::array();
  for (int64_t i = 0; i < comparison.examples; ++i) {
    const auto input =
        fmt::format("{}. <b>a</b> line of {}", i, std::string(static_cast<size_t>(40 * i), 'x'));
    better.push_back({{"input", input},
                      {"target", comparison.percent ? Json("love") : Json()},
                      {"prediction", comparison.percent ? Json("love") : Json()},
                      {"baseline_prediction", comparison.percent ? Json("politics") : Json()},
                      {"value", 1.0},
                      {"baseline_value", 2.5 - 0.1 * static_cast<double>(i)}});
    worse.push_back(better.back());
    std::swap(worse.back()["value"], worse.back()["baseline_value"]);
    std::swap(worse.back()["prediction"], worse.back()["baseline_prediction"]);
  }
  return {{"better", std::move(better)}, {"worse", std::move(worse)}};
}

inline Json made_up_results(const MadeUpComparison& comparison) {
  Json runs = Json::array();
  for (size_t i = 0; i < comparison.runs.size(); ++i)
    runs.push_back(made_up_run(comparison, comparison.runs[i], static_cast<int64_t>(i)));
  Json seeds = Json::array(), notices = Json::array();
  for (int64_t i = 1; i <= comparison.seeds; ++i) seeds.push_back(i);
  for (size_t i = 0; i < runs.size(); ++i) {
    const int failed = comparison.runs[i].failed;
    if (failed > 0)
      notices.push_back({{"kind", "failure"},
                         {"text", fmt::format("{}: {} of {} seeds failed", comparison.runs[i].name, failed,
                                              comparison.seeds)}});
    const auto& own = comparison.runs[i].baseline;
    if (i > 0 && own != runs[i]["name"]) runs[i]["baseline"] = own.empty() ? runs[0]["name"] : Json(own);
    if (runs[i]["baseline"].is_null()) continue;
    const auto& baseline =
        *std::ranges::find_if(runs, [&](const Json& other) { return other["name"] == runs[i]["baseline"]; });
    if (runs[i]["metric"].is_null() || baseline["metric"].is_null()) continue;
    const double difference =
        runs[i]["metric"]["mean"].get<double>() - baseline["metric"]["mean"].get<double>();
    const double p = std::exp(-std::abs(difference) / (comparison.runs[i].scatter + 1e-9));
    const bool better = comparison.percent == (difference > 0);
    const double p_corrected = std::min(1.0, p * static_cast<double>(runs.size() - 1));
    const char* verdict = comparison.seeds < 2  ? "untested"
                          : p_corrected >= 0.05 ? "undecided"
                          : better              ? "better"
                                                : "worse";
    if (comparison.examples > 0) {
      runs[i]["slices"] = made_up_slices();
      runs[i]["examples"] = made_up_examples(comparison);
      runs[i]["translations"] = {{{"key", "bleu"},
                                  {"label", "BLEU"},
                                  {"value", 20.5},
                                  {"baseline_value", 18.25},
                                  {"difference", 2.25},
                                  {"low", 0.5},
                                  {"high", 4.0},
                                  {"p", 0.01},
                                  {"p_corrected", 0.02},
                                  {"verdict", "better"}}};
    }
    runs[i]["versus_baseline"] = {{"difference", difference},   {"low", difference - 0.02},
                                  {"high", difference + 0.02},  {"p", p},
                                  {"p_corrected", p_corrected}, {"verdict", verdict}};
  }
  Json results = {{"schema", "transformer-zoo/comparison/2"},
                  {"name", comparison.name},
                  {"title", comparison.title},
                  {"folklore", comparison.folklore},
                  {"measured", comparison.measured},
                  {"note", comparison.note},
                  {"command", fmt::format("zoo compare configs/compare/{}.yaml --seeds {}", comparison.name,
                                          comparison.seeds)},
                  {"created", "2026-01-31T12:00:00Z"},
                  {"machine",
                   {{"cpu", "Made-up Processor 9000"},
                    {"cores", 2},
                    {"threads", 2},
                    {"memory_bytes", 16'000'000'000},
                    {"device", "cpu"},
                    {"system", "Linux 6.1 x86_64"}}},
                  {"yaml", fmt::format("title: {}\nbase: base.yaml\n", comparison.title)},
                  {"versions",
                   {{"transformer_zoo", "0.1.0"},
                    {"commit", "0123456789ab"},
                    {"libtorch", "2.13.0"},
                    {"compiler", "GNU 12.2.0"}}},
                  {"task", comparison.task},
                  {"metric",
                   {{"key", comparison.metric},
                    {"label", comparison.label},
                    {"better", comparison.percent ? "higher" : "lower"},
                    {"percent", comparison.percent}}},
                  {"budget", {{"kind", "steps"}, {"amount", comparison.steps}}},
                  {"match", {{"quantity", "parameters"}, {"target", 790'000}, {"spread", 0.013}}},
                  {"margin", 0.01},
                  {"power",
                   {{"deviations", 2},
                    {"seeds", comparison.seeds},
                    {"tests", comparison.runs.size() - 1},
                    {"probability", 0.34},
                    {"seeds_needed", 7}}},
                  {"variants", comparison.variants},
                  {"grid", comparison.grid},
                  {"seeds", std::move(seeds)},
                  {"fair", notices.empty()},
                  {"notices", std::move(notices)},
                  {"differences", {"model.architecture", "model.n_layers", "model.d_model"}},
                  {"runs", std::move(runs)}};
  mark_best_values(results);
  return results;
}

/// The three families as classifiers with three seeds each. One seed failed. Every part of a report has data.
inline Json three_families() {
  const std::vector<std::string> text = {"▁Nothing", "▁is", "▁so",    "▁admirable", "▁in", "▁politics",
                                         "▁as",      "▁a",  "▁short", "▁memory",    "."};
  auto with_marks = text;
  with_marks.insert(with_marks.begin(), "<cls>");
  with_marks.push_back("<sep>");
  auto results = made_up_results(
      {.name = "three-families",
       .title = "An encoder, a decoder and both as classifiers",
       .folklore = "Encoders are the ones that classify; a decoder needs to be far larger to do as well.",
       .measured = "encoder-decoder has the best accuracy, 71.0 % ± 1.1 %; decoder is worse than encoder (p "
                   "= 0.012).",
       .task = "text_classification",
       .metric = "accuracy",
       .label = "accuracy",
       .percent = true,
       .runs =
           {{.name = "encoder",
             .architecture = "encoder",
             .quality = 0.69,
             .scatter = 0.006,
             .source = with_marks},
            {.name = "decoder", .architecture = "decoder", .quality = 0.64, .scatter = 0.008, .source = text},
            {.name = "encoder-decoder",
             .architecture = "encoder_decoder",
             .quality = 0.71,
             .scatter = 0.004,
             .n_layers = 2,
             .d_model = 144,
             .source = text,
             .target = {"<bos>", "▁politics"},
             .failed = 1}},
       .examples = 5});
  for (size_t i = 0; i < results["runs"].size(); ++i)
    results["runs"][i]["confusion"] =
        made_up_confusion({"love", "politics", "</script><b>wit"}, static_cast<int64_t>(i));
  return results;
}

/// Each run chooses one of three learning rates; the first runs choose the largest.
inline Json made_up_tuning(const Json& runs) {
  Json variants = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool at_edge = i < 3;
    Json candidates = Json::array();
    for (const double lr : {0.001, 0.003, 0.01})
      candidates.push_back({{"name", fmt::format("lr={}", lr)},
                            {"metric", 3.3 + std::abs(std::log10(lr / (at_edge ? 0.01 : 0.003))) / 5}});
    variants.push_back({{"name", runs[i]["name"]},
                        {"chosen", at_edge ? "lr=0.01" : "lr=0.003"},
                        {"at_edge", at_edge},
                        {"keys_at_edge", at_edge ? Json({"training.optimizer.lr"}) : Json::array()},
                        {"flops", 1e12},
                        {"seconds", 30},
                        {"candidates", std::move(candidates)}});
  }
  return {{"share", 0.25},
          {"seeds", {1001}},
          {"budget", {{"kind", "steps"}, {"amount", 100}}},
          {"variants", std::move(variants)}};
}

/// A fit over the runs of each variant, as if their depths were sizes.
inline Json made_up_sizes(const Json& runs, const std::vector<std::string>& names) {
  const auto estimate = [](double value) {
    return Json{{"value", value}, {"low", 0.9 * value}, {"high", 1.1 * value}};
  };
  Json variants = Json::array(), points = Json::array();
  for (const auto& name : names) {
    const double factor = name == names[0] ? 1 : 1.1;
    variants.push_back({{"name", name},
                        {"exponent", estimate(0.05)},
                        {"scale", 12 * factor},
                        {"compute_ratio", estimate(factor)}});
    for (const auto& run : runs) {
      if (run["variant"] != name) continue;
      for (const auto& seed : run["seeds"]) {
        const double flops = seed["flops"];
        points.push_back({{"run", run["name"]},
                          {"variant", name},
                          {"size", run["grid"]["model.n_layers"]},
                          {"seed", seed["seed"]},
                          {"flops", flops},
                          {"loss", 12 * factor * std::pow(flops, -0.05)}});
      }
    }
  }
  return {{"names", {"2", "8", "24"}}, {"loss", "bits per byte"},         {"exponent", estimate(0.05)},
          {"p_equal_exponents", 0.4},  {"variants", std::move(variants)}, {"points", std::move(points)}};
}

/// Two variants at three depths, with and without a warm-up: twelve runs whose names are alike. Post-norm
/// does not learn at the largest depth, and learns with some seeds at the second.
inline Json norm_placement() {
  MadeUpComparison comparison{
      .name = "norm-placement",
      .title = "Pre-norm against post-norm",
      .folklore = "Post-norm needs a warm-up; pre-norm trains at any depth.",
      .measured = "post-norm is worse than pre-norm at 2 of 6 points of the grid.",
      .task = "language_modeling",
      .metric = "bits_per_byte",
      .label = "bits per byte",
      .seeds = 4,
      .variants = {"pre-norm", "post-norm"},
      .grid = {{{"key", "model.n_layers"}, {"label", "n_layers"}, {"values", {"2", "8", "24"}}},
               {{"key", "training.schedule.warmup_steps"},
                {"label", "warmup_steps"},
                {"values", {"0", "100"}}}},
      .note = "The models are small, and so is the learning rate."};
  for (const std::string variant : {"pre-norm", "post-norm"}) {
    for (const int64_t layers : {2, 8, 24}) {
      for (const int64_t warmup : {0, 100}) {
        const auto cell = fmt::format(", n_layers={}, warmup_steps={}", layers, warmup);
        const bool post = variant == "post-norm";
        comparison.runs.push_back({.name = variant + cell,
                                   .quality = 3.1 - 0.004 * static_cast<double>(layers) + (post ? 0.03 : 0) -
                                              (warmup > 0 ? 0.01 : 0),
                                   .scatter = 0.012,
                                   .n_layers = layers,
                                   .d_model = 64,
                                   .variant = variant,
                                   .grid = {{"model.n_layers", std::to_string(layers)},
                                            {"training.schedule.warmup_steps", std::to_string(warmup)}},
                                   .baseline = "pre-norm" + cell,
                                   .dull = !post || layers == 2 ? 0
                                           : layers == 24       ? 4
                                           : warmup > 0         ? 1
                                                                : 2});
      }
    }
  }
  auto results = made_up_results(comparison);
  add_experts(results["runs"][0], {40, 10, 0, 30});
  add_experts(results["runs"][1], std::vector<int64_t>(64, 5));
  results["match"] = nullptr;
  results["tuning"] = made_up_tuning(results["runs"]);
  results["sizes"] = made_up_sizes(results["runs"], {"pre-norm", "post-norm"});
  return results;
}

/// A grid of `count` decoders with three seeds each: more than a page can show at once. One decoder failed.
inline Json many_runs(int64_t count) {
  MadeUpComparison comparison{.name = "grid",
                              .title = "Depth, width and much else",
                              .folklore = "",
                              .measured = "The deepest are best.",
                              .task = "language_modeling",
                              .metric = "bits_per_byte",
                              .label = "bits per byte",
                              .steps = 4000};
  std::vector<std::string> text;
  for (int64_t i = 0; i < 32; ++i) text.push_back(fmt::format("▁word{}", i));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t layers = 2 + i % 7, width = 64 + 16 * (i % 11);
    comparison.runs.push_back(
        {.name = fmt::format("n_layers={} d_model={} lr=0.00{} #{}", layers, width, 1 + i % 9, i),
         .quality =
             2.6 - 0.05 * static_cast<double>(layers) - 0.001 * static_cast<double>(width) + 0.1 * wobble(i),
         .scatter = 0.02,
         .n_layers = layers,
         .d_model = width,
         .source = text,
         .failed = i == 17 ? 3 : 0});
  }
  return made_up_results(comparison);
}

}  // namespace zoo::testing
