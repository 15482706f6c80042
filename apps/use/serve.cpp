#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/console/commands.h"
#include "apps/console/options.h"
#include "apps/console/run_arguments.h"
#include "base/device.h"
#include "base/error.h"
#include "interop/foreign_files.h"
#include "io/file_kind.h"
#include "serving/api/access_log.h"
#include "serving/api/api.h"
#include "serving/http/http_server.h"
#include "serving/service.h"

namespace zoo {
namespace {

struct ServeArguments {
  std::vector<std::string> models;  // PATH or NAME=PATH
  std::filesystem::path base;       // of the adapters among them
  std::filesystem::path draft;      // of the only one
  std::filesystem::path lens;       // likewise
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::optional<std::string> api_key;
  std::optional<double> memory_limit;  // GB
  std::optional<WeightFormat> weights;
  std::optional<CacheFormat> cache;
  std::string device = "auto";
  int64_t parallel = 64, queue = 1024, max_tokens = 4096, max_seconds = 600, max_body = 32;
  bool quiet = false;
};

/// The names that a model may have, the shortest first: the last parts of its path.
std::vector<std::string> names_of(const std::filesystem::path& path) {
  auto whole = std::filesystem::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string name = has_extension(whole, {".gguf"}) ? whole.stem().string() : whole.filename().string();
  std::vector<std::string> names = {name};
  for (auto folder = whole.parent_path(); folder.has_filename(); folder = folder.parent_path())
    names.push_back(name = folder.filename().string() + "/" + name);
  return names;
}

/// NAME=PATH, or a path, whose last parts are the name: as few as no other model has.
std::vector<ModelSource> sources_of(const ServeArguments& arguments) {
  std::vector<ModelSource> sources;
  std::vector<std::vector<std::string>> names;
  std::error_code ignored;
  if (!arguments.draft.empty() && arguments.models.size() > 1)
    throw UsageError("--draft proposes tokens for one model: serve it alone");
  if (!arguments.lens.empty() && arguments.models.size() > 1)
    throw UsageError("--lens was trained for one model: serve it alone");
  for (const auto& text : arguments.models) {
    const size_t equals = text.find('=');
    const bool is_named = equals != text.npos && !std::filesystem::exists(text, ignored);
    const std::filesystem::path path = is_named ? text.substr(equals + 1) : text;
    names.push_back(is_named ? std::vector{text.substr(0, equals)} : names_of(path));
    sources.push_back({.id = {},
                       .path = path,
                       .base = is_adapter(path) ? arguments.base : std::filesystem::path(),
                       .draft = arguments.draft,
                       .lens = arguments.lens,
                       .weights = arguments.weights,
                       .cache = arguments.cache,
                       .device = parse_device(arguments.device)});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_chosen = names[i].size() == 1;
    const auto is_own = [&](const std::string& name) {
      // A chosen name is only taken by another one: paths have longer names.
      return std::ranges::count_if(names, [&](const auto& list) {
               return (!is_chosen || list.size() == 1) && std::ranges::find(list, name) != list.end();
             }) == 1;
    };
    const auto own = std::ranges::find_if(names[i], is_own);
    if (own == names[i].end()) {
      throw UsageError(fmt::format("two models are called '{}': write NAME={} to choose another name",
                                   names[i].front(), sources[i].path.string()));
    }
    sources[i].id = *own;
  }
  if (!arguments.base.empty() &&
      std::ranges::all_of(sources, [](const ModelSource& source) { return source.base.empty(); }))
    throw UsageError("--base: none of the models is an adapter of PEFT");
  return sources;
}

std::optional<std::string> key_of(const ServeArguments& arguments) {
  const char* const variable = std::getenv("ZOO_API_KEY");
  auto key = arguments.api_key;
  if (!key && variable) key = variable;
  if (key && key->empty()) throw UsageError("the API key is empty: give a text that is hard to guess");
  return key;
}

std::string address(const std::string& host, uint16_t port) {
  return host.find(':') == host.npos ? fmt::format("http://{}:{}", host, port)
                                     : fmt::format("http://[{}]:{}", host, port);
}

void serve(const ServeArguments& arguments) {
  const auto key = key_of(arguments);
  const bool is_local = is_loopback(arguments.host);
  if (!is_local && !key) {
    throw UsageError(
        fmt::format("--host {}: other machines can reach this address, so add --api-key KEY (or the variable "
                    "ZOO_API_KEY)",
                    arguments.host));
  }
  ServiceOptions options{.models = sources_of(arguments),
                         .limits = {.most_rows = arguments.parallel,
                                    .most_outputs = arguments.queue,
                                    .most_time = std::chrono::seconds(arguments.max_seconds)},
                         .on_open = [](const ModelSource& model) { note_large_weights(model.path); }};
  constexpr double giga = 1e9;
  if (arguments.memory_limit) options.memory_limit = static_cast<int64_t>(*arguments.memory_limit * giga);
  Service service(std::move(options));
  for (const auto& [card, is_loaded, counts] : service.models()) {
    if (!arguments.weights)
      note_chosen_weights(card.id + " has its weights", card.weights, card.generation.weights);
  }
  // This thread only waits from now on. Its team of OpenMP threads would count among those that compute:
  // GCC's runtime lets all of them sleep between any two loops if they are more than the processors.
  omp_pause_resource_all(omp_pause_soft);
  Api api(service, {.api_key = key,
                    .hosts = is_local && !key ? HostNames::of_this_machine : HostNames::any,
                    .limits = {.most_tokens = arguments.max_tokens}});
  auto handlers = api.handlers();
  if (!arguments.quiet) {
    handlers.log = [count = std::move(handlers.log)](const AccessRecord& record) {
      count(record);
      log_access(std::cerr, record);
    };
  }
  HttpServer server({.host = arguments.host,
                     .port = static_cast<uint16_t>(arguments.port),
                     .limits = {.body_bytes = static_cast<uint64_t>(arguments.max_body) << 20},
                     .stop_on = StopOn::signals},
                    std::move(handlers));
  std::cout << "serving at " << address(arguments.host, server.port()) << std::endl;
  server.run();
}

}  // namespace

void add_serve(CLI::App& app) {
  const auto arguments = std::make_shared<ServeArguments>();
  auto* command = app.add_subcommand(
      "serve", "Answer requests for trained models over HTTP: OpenAI's API, and a page to try them");
  command
      ->add_option("MODEL", arguments->models,
                   "Runs, directories from Hugging Face or .gguf files; NAME=PATH names a model")
      ->type_name("RUN...")
      ->required();
  command
      ->add_option("--host", arguments->host,
                   "The address to listen at; beyond this machine only with an API key")
      ->option_text("ADDRESS")
      ->capture_default_str();
  command->add_option("--port", arguments->port, "The port; 0: any that is free")
      ->type_name("PORT")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--api-key", arguments->api_key,
                   "What clients must send as their key; better in the variable ZOO_API_KEY, which other "
                   "users of this machine do not see")
      ->option_text("KEY");
  command
      ->add_option("--memory-limit", arguments->memory_limit,
                   "Most memory for weights: models beyond it are loaded when they are asked for, in place "
                   "of those that were not used for longest")
      ->type_name("GB")
      ->check(number(0));
  command->add_option("--parallel", arguments->parallel, "Outputs of a model that grow together")
      ->type_name("N")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--queue", arguments->queue, "Outputs of a model that are under way or wait; more get 429")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  command->add_option("--max-tokens", arguments->max_tokens, "Most tokens of one output")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  command->add_option("--max-seconds", arguments->max_seconds, "Most seconds for a request; it ends then")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  command->add_option("--max-body", arguments->max_body, "Most MiB of a request")
      ->type_name("MIB")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  command->add_flag("--quiet", arguments->quiet, "Write no line for each request");
  command
      ->add_option("--draft", arguments->draft,
                   "A smaller run with the same vocabulary, which proposes tokens that the model checks "
                   "together; greedy outputs stay the same")
      ->option_text("RUN");
  command
      ->add_option("--lens", arguments->lens,
                   "A lens that was trained for the model (zoo lens --train), with weights in fp32")
      ->option_text("FILE");
  add_base(*command, arguments->base);
  add_weights(*command, arguments->weights);
  add_cache(*command, arguments->cache);
  add_device(*command, arguments->device);
  command->footer(
      "Prints its address when it is ready, and a line of JSON for each request on standard error. SIGTERM "
      "or Ctrl-C: finishes the requests that are under way and ends; a second one ends at once.");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace zoo
