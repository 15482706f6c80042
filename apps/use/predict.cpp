// zoo predict: what a trained model says about new inputs: the class of a text, of its words or of an image,
// the objects in an image, what is said in a recording, or the structure of a protein.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/console/commands.h"
#include "apps/console/input_files.h"
#include "apps/console/options.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/run_arguments.h"
#include "apps/console/texts.h"
#include "apps/use/fold.h"
#include "base/error.h"
#include "base/text.h"
#include "data/images/draw_boxes.h"
#include "data/images/image_file.h"
#include "data/tables.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "pages/labels_page.h"
#include "tasks/problem.h"
#include "tasks/structures/folded_chain.h"
#include "text/batches/tagged_texts.h"
#include "text/text_rows.h"

namespace zoo {
namespace {

struct PredictArguments {
  RunArguments run;
  TextArguments texts;
  std::vector<std::string> seconds;  // the second text of each pair, whose first text is in texts.texts
  std::vector<std::filesystem::path> images, recordings;
  std::vector<std::string> labels;  // of a model that compares pictures with texts
  std::optional<std::string> label_template;
  std::optional<int64_t> top;
  std::optional<double> min_score;
  /// The directory of pictures with boxes, or of structures; the page of texts with a label for each word.
  std::optional<std::filesystem::path> out;
  std::optional<StructureFormat> format;
  std::optional<int64_t> recycles;
  std::optional<std::filesystem::path> truth;
  SpeechOptions speech;
  bool timestamps = false;
  std::optional<std::filesystem::path> subtitles;
  bool json = false, strict = false, pages = false;
};

// The labels of each text in plain output. All labels of a task with many would hide the likely ones.
constexpr int64_t kShownLabels = 5;
// A model that detects suggests as many objects for a picture as it has queries, nearly all of them unlikely.
constexpr double kLeastScore = 0.5;

/// Throws UsageError if the run's task makes no predictions.
void require_predictions(const Run& run, const std::filesystem::path& dir) {
  const auto& type = task_type(run.experiment());
  const auto head = run.task().purpose().head;
  const bool takes_labels = type.labels == LabelSource::options;
  if (type.predicts_from != PredictionInput::nothing && (head != HeadKind::none || takes_labels)) return;
  const char* const advice = head == HeadKind::language_modeling ? ": zoo generate writes text with it"
                             : head == HeadKind::masked_language_modeling
                                 ? ": zoo generate fills masks with it"
                                 : "";
  throw UsageError(
      fmt::format("{}: the task {} has no labels to predict{}", dir.string(), type.name, advice));
}

/// Throws UsageError for options that only a task with objects has; --out is also for one that labels texts.
void require_objects(const PredictArguments& arguments, const Run& run) {
  const auto& type = task_type(run.experiment());
  if (type.predicts == PredictionKind::objects) return;
  const bool has_page = type.predicts_from == PredictionInput::text;
  const char* const option = arguments.out && !has_page ? "--out"
                             : arguments.min_score      ? "--min-score"
                                                        : nullptr;
  if (option)
    throw UsageError(fmt::format("{}: {} classifies, it finds no objects: leave it out", option,
                                 arguments.run.dir.string()));
}

/// Throws UsageError if labels are missing, or given to a run that has its own.
void check_labels(const PredictArguments& arguments, const Run& run) {
  const auto dir = arguments.run.dir.string();
  if (task_type(run.experiment()).labels == LabelSource::options) {
    if (arguments.labels.empty())
      throw UsageError(fmt::format(
          "{} compares pictures with texts: name some, such as --labels \"a dog\" \"a cat\"", dir));
    if (arguments.label_template && arguments.label_template->find("{}") == std::string::npos)
      throw UsageError("--template: it has no {} for the label, as \"a photo of a {}.\" has");
    return;
  }
  const char* const option = !arguments.labels.empty()  ? "--labels"
                             : arguments.label_template ? "--template"
                                                        : nullptr;
  if (option)
    throw UsageError(fmt::format("{}: {} has labels of its own, or none: leave it out", option, dir));
}

/// Throws UsageError for an option that a task without a list of labels for each input has no use for.
void refuse_top(const PredictArguments& arguments, const Run& run) {
  const auto& type = task_type(run.experiment());
  if (arguments.top && type.predicts == PredictionKind::tokens &&
      problem_of(run.experiment()) == Problem::single_label)
    throw UsageError("--top: this run gives each word or character one label: leave it out");
  if (arguments.top && type.predicts_from == PredictionInput::audio_file)
    throw UsageError("--top: this run writes down what is said: leave it out");
}

/// The files in `out` for the pictures with boxes of these inputs: STEM.png, or STEM-2.png, STEM-3.png, … for
/// further inputs with the same stem. Throws UsageError if a file would replace one of the inputs.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& out,
                                               const std::vector<std::string>& inputs) {
  if (out.empty()) throw UsageError("--out: the name is empty: give a directory");
  if (is_there(out) && !has_directory(out))
    throw UsageError(fmt::format("--out: {} is not a directory", out.string()));
  // A name may have 255 bytes, with ".png".
  constexpr size_t longest_stem = 251, longest_with_number = 230;
  std::vector<std::filesystem::path> files;
  std::set<std::string> taken;
  for (const std::filesystem::path input : inputs) {
    const std::string stem = input.stem().string();
    std::string name = stem.substr(0, longest_stem);
    for (int64_t n = 2; !taken.insert(name).second; ++n)
      name = fmt::format("{}-{}", stem.substr(0, longest_with_number), n);
    files.push_back(out / (name + ".png"));
  }
  std::set<std::filesystem::path> read;
  std::error_code unknown;
  for (const auto& input : inputs) read.insert(std::filesystem::weakly_canonical(input, unknown));
  read.erase(std::filesystem::path());  // of inputs that do not exist
  for (const auto& file : files) {
    if (read.contains(std::filesystem::weakly_canonical(file, unknown)))
      throw UsageError(fmt::format("--out: {} would be replaced, which is an input: choose another directory",
                                   file.string()));
  }
  return files;
}

/// Writes each picture with its boxes. files: of the inputs, which the predictions are of, except for those
/// that could not be read.
void draw(const std::vector<Prediction>& predictions, const std::vector<std::string>& inputs,
          const std::vector<std::filesystem::path>& files, const Run& run) {
  const auto show = progress_over("drawing", "pictures");
  size_t input = 0;
  int64_t n_drawn = 0;
  for (const auto& prediction : predictions) {
    while (inputs[input] != prediction.input) ++input;
    const auto& file = files[input++];
    make_directory(file.parent_path());
    const auto image = read_image(prediction.input, Follow::everything, 3);
    const auto drawn = draw_boxes(image, prediction.objects(), run.task().vocabulary().labels);
    write_file_atomically(file, encode_png(drawn));
    show(++n_drawn, std::ssize(predictions));
  }
}

/// The kind of the files that the run reads; nothing: it reads texts.
std::optional<FileKind> files_of(const Run& run) {
  switch (task_type(run.experiment()).predicts_from) {
    case PredictionInput::image_file:
      return FileKind::images;
    case PredictionInput::audio_file:
      return FileKind::recordings;
    default:
      return std::nullopt;
  }
}

/// Throws UsageError if --pair does not fit the run or --text.
void check_seconds(const PredictArguments& arguments, const Run& run) {
  const auto n_seconds = arguments.seconds.size(), n_firsts = arguments.texts.texts.size();
  if (n_seconds == 0) return;
  if (run.task().pairs() == PairUse::none)
    throw UsageError("--pair: this run classifies single texts: leave it out");
  if (n_seconds != n_firsts) {
    throw UsageError(
        fmt::format("--pair: there are {} second texts, but {} first ones (--text)", n_seconds, n_firsts));
  }
}

/// Appends the lines of a file or of standard input; a tab divides pairs where the run reads them.
void add_lines(std::vector<std::string> lines, PairUse use, TextInputs& to) {
  const auto n_tabs = std::ranges::count_if(
      lines, [](const auto& line) { return line.find(kBetweenPairs) != std::string::npos; });
  if (n_tabs > 0 && use != PairUse::always) {
    std::cerr << fmt::format(
        "note: {} of {} texts {} a tab, {}\n", n_tabs, lines.size(), n_tabs == 1 ? "has" : "have",
        use == PairUse::possible ? "which divides the two texts of a pair"
                                 : "which is a part of the text: this run was trained on single texts");
  }
  auto more = split_at_tabs(std::move(lines), use);
  more.seconds.resize(more.texts.size());
  std::ranges::move(more.texts, std::back_inserter(to.texts));
  std::ranges::move(more.seconds, std::back_inserter(to.seconds));
}

/// The texts that the arguments name. Throws DataError, UsageError.
TextInputs text_inputs(const PredictArguments& arguments, const Run& run) {
  const auto& data = run.experiment().data;
  const auto use = run.task().pairs();
  check_seconds(arguments, run);
  TextInputs inputs;
  if (!arguments.texts.texts.empty()) {
    inputs.texts = read_texts({.texts = arguments.texts.texts, .files = {}}, data);
    if (use == PairUse::always && arguments.seconds.empty())
      inputs = split_at_tabs(std::move(inputs.texts), use);
    inputs.seconds.resize(inputs.texts.size());
    std::ranges::copy(arguments.seconds, inputs.seconds.begin());
  }
  if (!arguments.texts.names_texts()) add_lines(read_texts(arguments.texts, data), use, inputs);
  for (const auto& file : arguments.texts.files) {
    // The text of a table's row is one text, whatever is in it.
    const bool is_single = is_table(file) && use == PairUse::possible;
    auto lines = zoo::read_texts(file, data);
    if (is_single) {
      std::ranges::move(lines, std::back_inserter(inputs.texts));
      inputs.seconds.resize(inputs.texts.size());
    } else {
      add_lines(std::move(lines), use, inputs);
    }
  }
  return inputs;
}

/// The inputs that the arguments name. Throws UsageError for inputs of a kind that the run does not read.
TextInputs inputs_of(const PredictArguments& arguments, const Run& run) {
  if (!arguments.texts.texts.empty()) require_input(run, PredictionInput::text, "--text");
  if (!arguments.seconds.empty()) require_input(run, PredictionInput::text, "--pair");
  if (!arguments.images.empty()) require_input(run, PredictionInput::image_file, "--image");
  if (!arguments.recordings.empty()) require_input(run, PredictionInput::audio_file, "--audio");
  const auto kind = files_of(run);
  if (!kind) return text_inputs(arguments, run);
  return {.texts = input_files(*kind, *kind == FileKind::images ? arguments.images : arguments.recordings,
                               arguments.texts.files)};
}

/// Whether a person types the texts and sees each answer at once.
bool is_conversation(const PredictArguments& arguments, const Run& run) {
  return !files_of(run) && !arguments.texts.names_texts() && arguments.seconds.empty() &&
         arguments.images.empty() && arguments.recordings.empty() && !arguments.json && input_is_typed();
}

void answer_typed_texts(const PredictArguments& arguments, const Run& run) {
  converse("Type a text to classify", kMostTypedBytes, [&](size_t, std::string text) {
    const auto typed = split_at_tabs(typed_text(std::move(text)), run.task().pairs());
    const auto predictions = run.task().predict(run.model(), typed.texts, {.seconds = typed.seconds});
    std::cout << to_text(predictions, arguments.top.value_or(kShownLabels)) << std::flush;
  });
}

/// The right labels of texts from tables that have them; nothing if there are other inputs, too.
std::vector<std::vector<std::string>> right_labels(const PredictArguments& arguments, const Run& run) {
  auto config = run.experiment().data;
  if (!arguments.texts.texts.empty() || arguments.texts.files.empty()) return {};
  config.test.clear();
  for (const auto& file : arguments.texts.files) {
    if (!is_table(file)) return {};
    config.test.emplace_back(std::filesystem::absolute(file).string());
  }
  std::vector<std::vector<std::string>> labels;
  const auto problem = problem_of(run.experiment());
  const auto in_one_text = [&](std::string_view unit) {
    if (problem == Problem::single_label || unit == kNotCounted) return std::string(unit);
    const auto several = labels_of_unit(unit, config.label_separator);
    const std::set<std::string_view> sorted(several.begin(), several.end());
    return sorted.empty() ? std::string(kNoLabels) : fmt::format("{}", fmt::join(sorted, ", "));
  };
  try {
    if (task_type(run.experiment()).predicts != PredictionKind::tokens) {
      for (const auto& field : labelled_texts(config, problem).take(Split::test).labels) {
        labels.push_back(problem == Problem::multi_label ? labels_in(field, config.label_separator)
                                                         : std::vector<std::string>{field});
      }
      return labels;
    }
    for (const auto& text : read_tagged(config, Split::test, run.task().vocabulary().labels, problem)) {
      auto& units = labels.emplace_back();
      for (const auto unit : units_of(text.labels, text.unit)) units.push_back(in_one_text(unit));
    }
  } catch (const DataError&) {  // a table without labels
    return {};
  }
  return labels;
}

/// Writes the page of texts with their labels.
void write_page(const std::vector<Prediction>& predictions, const PredictArguments& arguments,
                const Run& run) {
  const auto right = right_labels(arguments, run);
  std::vector<LabelledText> texts;
  for (size_t i = 0; i < predictions.size(); ++i) {
    auto& text = texts.emplace_back(LabelledText{.prediction = predictions[i]});
    if (right.size() != predictions.size()) continue;
    // Of words that were cut nothing is known.
    const auto* const tokens = std::get_if<PredictedTokens>(&predictions[i].answer);
    const auto n = tokens ? tokens->tokens.size() : right[i].size();
    if (right[i].size() < n) continue;
    text.truth.assign(right[i].begin(), right[i].begin() + static_cast<ptrdiff_t>(n));
  }
  write_file_atomically(*arguments.out, labels_page(run.experiment().name, texts), Follow::everything);
  std::cerr << "texts with labels: " << arguments.out->string() << '\n';
}

void note_unlikely(const UnlikelyObjects& unlikely, double min_score) {
  if (unlikely.n == 0) return;
  std::cerr << fmt::format(
      "note: {} object{} with scores below {:g} left out (--min-score); the best: {} {:.2f} in {}\n",
      unlikely.n, unlikely.n == 1 ? "" : "s", min_score, excerpt(unlikely.label), unlikely.best_score,
      excerpt(unlikely.input, 200));
}

void note_transparent(const std::vector<Prediction>& predictions) {
  const auto n = std::ranges::count(predictions, true, &Prediction::on_white);
  if (n == 0) return;
  std::cerr << fmt::format("note: {} of {} images {} transparent parts, which are put on white\n", n,
                           predictions.size(), n == 1 ? "has" : "have");
}

/// Lines of several files begin with their names.
InputColumn column_for(const PredictArguments& arguments, const Run& run, size_t n_inputs) {
  const bool is_one_file = n_inputs == 1 && std::ranges::none_of(arguments.images, has_directory) &&
                           std::ranges::none_of(arguments.recordings, has_directory);
  return files_of(run) && !is_one_file ? InputColumn::first : InputColumn::none;
}

SpeechOptions speech_options(const PredictArguments& arguments) {
  auto options = arguments.speech;
  if (arguments.timestamps || arguments.subtitles) options.times = SpokenTimes::told;
  return options;
}

/// The files of the subtitles of these recordings. Throws UsageError for a name that is none.
std::vector<std::filesystem::path> subtitle_files(const std::filesystem::path& to,
                                                  const std::vector<std::string>& recordings) {
  if (has_directory(to)) {
    std::vector<std::filesystem::path> files;
    for (const std::filesystem::path recording : recordings) {
      files.push_back(to / recording.stem().concat(".srt"));
      if (std::ranges::count(files, files.back()) > 1)
        throw UsageError(fmt::format("--subtitles: two recordings are called {}", recording.stem().string()));
    }
    return files;
  }
  if (recordings.size() != 1)
    throw UsageError("--subtitles: there are several recordings: name a directory, which has to be there");
  if (!has_extension(to, {".srt", ".vtt"}))
    throw UsageError("--subtitles: name NAME.srt, NAME.vtt or a directory");
  return {to};
}

void write_subtitles(const std::vector<Prediction>& predictions, const std::vector<std::string>& inputs,
                     const std::vector<std::filesystem::path>& files) {
  for (const auto& prediction : predictions) {
    const auto at = static_cast<size_t>(std::ranges::find(inputs, prediction.input) - inputs.begin());
    const auto& segments = std::get<Transcript>(prediction.answer).segments.value();
    const auto text = has_extension(files[at], {".vtt"}) ? to_vtt(segments) : to_srt(segments);
    write_file_atomically(files[at], text, Follow::everything);
    std::cerr << "subtitles: " << files[at].string() << '\n';
  }
}

/// Returns whether every file could be read.
bool predict(const PredictArguments& arguments, const Run& run) {
  const auto& data = run.experiment().data;
  const auto [inputs, seconds] = inputs_of(arguments, run);
  const bool has_page = arguments.out && !files_of(run);
  const auto pictures =
      arguments.out && !has_page ? pictures_in(*arguments.out, inputs) : std::vector<std::filesystem::path>{};
  const auto subtitles = arguments.subtitles ? subtitle_files(*arguments.subtitles, inputs)
                                             : std::vector<std::filesystem::path>{};
  const auto kind = files_of(run);
  const char* const unit = !kind ? "texts" : *kind == FileKind::images ? "images" : "recordings";
  UnreadableFiles unreadable(kind.value_or(FileKind::images),
                             arguments.strict ? Unreadable::fail : Unreadable::skip, std::ssize(inputs));
  auto predictions = run.task().predict(run.model(), inputs,
                                        {.labels = arguments.labels,
                                         .label_template = arguments.label_template,
                                         .speech = speech_options(arguments),
                                         .seconds = seconds,
                                         .on_progress = progress_over("predicting", unit),
                                         .on_unreadable = unreadable.listener()});
  unreadable.finish();
  if (!subtitles.empty()) write_subtitles(predictions, inputs, subtitles);
  note_transparent(predictions);
  note_cut_texts(std::ranges::count(predictions, true, &Prediction::cut), std::ssize(inputs), data);
  const double min_score = arguments.min_score.value_or(kLeastScore);
  note_unlikely(keep_best_objects(predictions, min_score, arguments.top.value_or(kEveryLabel)), min_score);
  if (has_page) {
    write_page(predictions, arguments, run);
    return true;
  }
  if (arguments.out) {
    draw(predictions, inputs, pictures, run);
    std::cerr << fmt::format("{} drawing{} in {}\n", predictions.size(), predictions.size() == 1 ? "" : "s",
                             arguments.out->string());
  }
  const bool shows_all = arguments.json || task_type(run.experiment()).predicts == PredictionKind::objects;
  const int64_t top = arguments.top.value_or(shows_all ? kEveryLabel : kShownLabels);
  const auto column = column_for(arguments, run, inputs.size());
  std::cout << (arguments.json ? to_json(predictions, top, run.weight_format()) + "\n"
                               : to_text(predictions, top, column));
  return !unreadable.any();
}

/// Throws UsageError for an option that is for another kind of runs.
void refuse(bool is_given, std::string_view option, std::string_view reason) {
  if (is_given) throw UsageError(fmt::format("{}: this run {}: leave it out", option, reason));
}

void fold(const PredictArguments& arguments, const Run& run) {
  constexpr std::string_view reason = "folds proteins";
  refuse(!arguments.seconds.empty(), "--pair", reason);
  refuse(!arguments.images.empty(), "--image", reason);
  refuse(!arguments.recordings.empty(), "--audio", reason);
  refuse(arguments.top.has_value(), "--top", reason);
  refuse(arguments.min_score.has_value(), "--min-score", reason);
  refuse(arguments.strict, "--strict", reason);
  refuse(!arguments.labels.empty(), "--labels", reason);
  refuse(arguments.label_template.has_value(), "--template", reason);
  fold_sequences({.texts = arguments.texts,
                  .out = arguments.out,
                  .format = arguments.format,
                  .truth = arguments.truth,
                  .recycles = arguments.recycles,
                  .json = arguments.json,
                  .pages = arguments.pages},
                 run);
}

int predict(const PredictArguments& arguments) {
  const auto run = open_run(arguments.run);
  if (folds(run.experiment())) {
    fold(arguments, run);
    return EXIT_SUCCESS;
  }
  refuse(arguments.format.has_value(), "--format", "does not fold proteins");
  refuse(arguments.recycles.has_value(), "--recycles", "does not fold proteins");
  refuse(arguments.truth.has_value(), "--truth", "does not fold proteins");
  refuse(arguments.pages, "--page", "does not fold proteins");
  if (files_of(run) != FileKind::recordings) {
    constexpr std::string_view reason = "reads no recordings";
    refuse(arguments.speech.language.has_value(), "--language", reason);
    refuse(arguments.speech.task.has_value(), "--task", reason);
    refuse(arguments.timestamps, "--timestamps", reason);
    refuse(arguments.subtitles.has_value(), "--subtitles", reason);
  }
  require_predictions(run, arguments.run.dir);
  require_objects(arguments, run);
  check_labels(arguments, run);
  refuse_top(arguments, run);
  if (!is_conversation(arguments, run)) return predict(arguments, run) ? EXIT_SUCCESS : EXIT_FAILURE;
  answer_typed_texts(arguments, run);
  return EXIT_SUCCESS;
}

}  // namespace

void add_predict(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<PredictArguments>();
  arguments->run.automatic = AutomaticWeights::by_precision;
  auto* command = app.add_subcommand("predict",
                                     "Classify texts, their words or images, find objects in images, write "
                                     "down recordings, or fold proteins");
  add_run(*command, arguments->run.dir);
  add_texts(*command, arguments->texts);
  command
      ->add_option(
          "--pair", arguments->seconds,
          "The second text of a pair whose first is --text; may be repeated. In --input, and on standard "
          "input, a tab separates the texts of a pair, if the model is from the Hub or was trained on pairs")
      ->option_text("TEXT")
      ->allow_extra_args(false);
  add_files(*command, FileKind::images, arguments->images);
  add_files(*command, FileKind::recordings, arguments->recordings);
  command
      ->add_option("--labels", arguments->labels,
                   "The texts that each picture is compared with, for models of pictures and texts such as "
                   "CLIP and SigLIP: any, as --labels \"a dog\" \"a cat\"")
      ->option_text("TEXT...");
  command
      ->add_option("--template", arguments->label_template,
                   "What is compared in place of each label, which stands for the {}: \"a photo of a {}.\"; "
                   "default: as in its training, or the label alone")
      ->option_text("TEXT");
  command
      ->add_option("--top", arguments->top,
                   fmt::format("The N likeliest labels of each input, or its N best objects; default: {} "
                               "labels, with --json all; all objects",
                               kShownLabels))
      ->type_name("N")
      ->check(whole_number(1));
  command
      ->add_option("--min-score", arguments->min_score,
                   fmt::format("Leave out objects with a lower score; default: {}", kLeastScore))
      ->type_name("SCORE")
      ->check(number(0, 1));
  command
      ->add_option(
          "--out", arguments->out,
          "A directory to write the pictures to, with a box around each object, as PNG files named "
          "like the inputs; files of these names are replaced. Of a run that folds proteins, the "
          "directory for NAME.pdb of each chain, with the model's confidence (pLDDT, 0 to 100) as B "
          "factors. For a run that labels texts, their words or characters: an HTML page to write in "
          "place of lines, which also has the labels of --input, if it is a table with labels")
      ->type_name("PATH");
  command
      ->add_option("--format", arguments->format, "The form of the files of structures: pdb (default) or cif")
      ->type_name("FORM")
      ->transform(one_of<StructureFormat>());
  command->add_flag("--page", arguments->pages,
                    "Also write a page beside each file of a structure, NAME.html, that shows it");
  command
      ->add_option(
          "--truth", arguments->truth,
          "The known structures of proteins that are folded, as PDB or mmCIF: each chain is compared "
          "with the one there whose sequence is most like its own")
      ->type_name("FILE");
  command
      ->add_option(
          "--recycles", arguments->recycles,
          "How often a structure goes through the model that folds it again; default: as the model says")
      ->type_name("N")
      ->check(whole_number(0, 100));
  command
      ->add_option(
          "--language", arguments->speech.language,
          "Of a recording, for models that know several, such as Whisper: a code such as de, or auto, and "
          "the model says it; default: as its files say, else en")
      ->option_text("CODE");
  command
      ->add_option(
          "--task", arguments->speech.task,
          "What a model such as Whisper writes of a recording: transcribe, or translate (into English)")
      ->option_text("TASK")
      ->transform(one_of<SpeechTask>());
  command->add_flag(
      "--timestamps", arguments->timestamps,
      "Say when it is said, for models with tokens for times: begin, end and text of each segment");
  command
      ->add_option(
          "--subtitles", arguments->subtitles,
          "Also write these segments to NAME.srt or NAME.vtt, or of several recordings to NAME.srt in a "
          "directory")
      ->option_text("PATH");
  add_json(*command, arguments->json,
           "One JSON document: {\"results\": [{\"input\", \"labels\": [{\"label\", \"probability\"}]}]}, for "
           "a score {\"input\", \"score\"}, for recordings {\"input\", \"text\"} with \"segments\" for "
           "--timestamps, for words {\"input\", "
           "\"tokens\": [{\"token\", \"label\", \"probability\"}]}, for proteins {\"name\", \"sequence\", "
           "\"mean_plddt\", \"ptm\", \"plddt\", \"predicted_aligned_error\", \"truth\": {\"residues\", "
           "\"paired\", "
           "\"tm_score\", \"lddt\", \"rmsd\"}}, or for objects {\"input\", "
           "\"objects\": [{\"label\", \"score\", \"box\": [x, y, width, height]}]}");
  command->add_flag("--strict", arguments->strict,
                    "End at the first image or recording that cannot be read, instead of skipping it");
  add_base(*command, arguments->run.base);
  add_checkpoint(*command, arguments->run.checkpoint);
  add_weights(*command, arguments->run.weights);
  add_device(*command, arguments->run.device);
  command->footer(
      "Prints a line for each input: label, probability, label, probability, ..., the likeliest first, "
      "separated by tabs. The probabilities of all classes sum to 1; where an input may have several labels, "
      "each has a probability of its own. A model of pictures and texts has no labels: --labels names them. "
      "The "
      "probabilities of CLIP sum to 1 over them, and SigLIP says of each whether it fits. A model with one "
      "output, such as a reranker or a regression, "
      "prints a score (zoo inspect says what the outputs are). A text without tokens, such as an empty line, "
      "has no labels. Texts that are too long are cut as in training. A model of the task "
      "token_classification prints a line for each word or character that it read: word, label, probability "
      "(- for both if the tokenizer removes the word), and an empty line after each text. A model of "
      "speech_recognition prints what is said. If the model reads images or recordings, --input and standard "
      "input list their paths, one a line, and where there are several the line begins with the path. Files "
      "that cannot be read are named and skipped, and the exit code is 1 at the end. A model that detects "
      "prints a line for each object: input, label, score, x, y, width, height, in pixels of the picture. A "
      "model of the task structure_prediction reads proteins: --text is a sequence of letters, and --input "
      "is FASTA, a structure as PDB or mmCIF, of whose chains it takes the sequences, or a text with a "
      "sequence in each line, also with .gz. It prints the name of each chain, its length, the mean pLDDT, "
      "and the predicted TM-score, - for both if the model says nothing of its errors; with --truth also the "
      "residues that have a partner there, the TM-score, "
      "the "
      "lDDT and the RMSD in Å.");
  command->callback([arguments, &exit_code] { exit_code = predict(*arguments); });
}

}  // namespace zoo
