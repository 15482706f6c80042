#include "serving/api/tools.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text_files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTools = 128, kMostNameBytes = 64;
constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";

/// The key of a call's arguments.
const char* arguments_key(CallFormat format) {
  return format == CallFormat::object ? "parameters" : "arguments";
}

std::string read_name(RequestFields& function) {
  auto name = function.required_text("name");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (name.empty() || name.size() > kMostNameBytes || !std::ranges::all_of(name, is_plain))
    function.fail("name", fmt::format("must have 1 to {} letters, digits, _, - and .", kMostNameBytes));
  return name;
}

/// What stands beside the type of a tool or of a choice, or in an object of its own.
template <class Read>
void read_function(const Json& value, const std::string& place, ChatApi api, const Read& read) {
  RequestFields fields(value, place);
  if (fields.required_text("type") != "function") fields.fail("type", "must be function");
  if (api == ChatApi::responses) {
    read(fields);
  } else {
    RequestFields function(fields.required("function"), place + ".function");
    read(function);
    function.refuse_others();
  }
  fields.refuse_others();
}

void read_tool(const Json& tool, ChatApi api, ToolOffer& offer) {
  read_function(tool, "tools", api, [&](RequestFields& function) {
    auto name = read_name(function);
    if (std::ranges::find(offer.callable, name) != offer.callable.end())
      function.fail("name", fmt::format("is that of two tools: {}", name));
    Json shown{{"name", name}};
    if (const auto text = function.text("description")) shown["description"] = *text;
    if (const auto* const parameters = function.find("parameters")) {
      if (!parameters->is_object()) function.fail("parameters", "must be a JSON schema");
      shown["parameters"] = *parameters;
    }
    function.flag("strict", false);
    offer.callable.push_back(std::move(name));
    offer.tools.push_back(
        api == ChatApi::completions ? tool : Json{{"type", "function"}, {"function", std::move(shown)}});
  });
}

void read_choice(RequestFields& fields, ChatApi api, ToolOffer& offer) {
  const auto* const choice = fields.find("tool_choice");
  if (!choice) return;
  if (*choice == "none") {
    offer.choice = ToolChoice::none;
  } else if (*choice == "required") {
    offer.choice = ToolChoice::required;
  } else if (choice->is_object()) {
    read_function(*choice, "tool_choice", api, [&](RequestFields& function) {
      const auto name = function.required_text("name");
      if (std::ranges::find(offer.callable, name) == offer.callable.end())
        function.fail("name", "is not one of the tools");
      offer.choice = ToolChoice::required;
      offer.callable = {name};
    });
  } else if (*choice != "auto") {
    fields.fail("tool_choice",
                fmt::format("must be none, auto, required, or {{\"type\": \"function\", {}}}",
                            api == ChatApi::responses ? "\"name\": …" : "\"function\": {\"name\": …}"));
  }
  if (offer.choice == ToolChoice::required && offer.callable.empty())
    fields.fail("tool_choice", "needs tools");
}

/// A schema within another one, at `place`: its references lead to places within itself.
void move_references(Json& schema, const std::string& place) {
  for (auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string() && value.get<std::string>().starts_with('#')) {
      value = "#" + place + value.get<std::string>().substr(1);
    } else if (value.is_structured()) {
      move_references(value, place);
    }
  }
}

}  // namespace

std::optional<CallFormat> call_format(const ChatTemplate& chat_template) {
  // Its name and its argument are texts that no template has. Mistral's template wants an id of nine letters.
  const Json call{{"id", "abcdefghi"},
                  {"type", "function"},
                  {"function", {{"name", "zqxname"}, {"arguments", {{"zqxkey", 1}}}}}};
  const Json user{{"role", "user"}, {"content", "?"}};
  const Conversation conversation{
      {"messages", {user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}}}}};
  std::string text;
  try {
    text = chat_template.render(conversation).text;
  } catch (const DataError&) {
    return std::nullopt;  // it refuses calls
  }
  const size_t at = text.find("zqxname");
  if (at == text.npos || text.find("zqxkey") == text.npos) return std::nullopt;
  const auto before = std::string_view(text).substr(0, at), after = std::string_view(text).substr(at);
  const auto ends_in = [&](std::string_view open, std::string_view key) {
    const size_t begin = before.rfind(open);
    if (begin == before.npos) return false;
    const auto between = before.substr(begin + open.size());
    return between.find("\"name\"") != between.npos && between.size() < 64 && after.find(key) != after.npos;
  };
  if (ends_in(kOpen, "\"arguments\"")) return CallFormat::tags;
  if (ends_in("[TOOL_CALLS]", "\"arguments\"")) return CallFormat::list;
  if (ends_in("{", "\"parameters\"")) return CallFormat::object;
  return std::nullopt;
}

ToolOffer read_tools(RequestFields& fields, ChatApi api) {
  ToolOffer offer;
  const auto* const tools = fields.find("tools");
  if (tools && (!tools->is_array() || tools->size() > kMostTools))
    fields.fail("tools", fmt::format("must be a list of at most {} tools", kMostTools));
  if (tools && !tools->empty()) {
    for (const auto& tool : *tools) read_tool(tool, api, offer);
    offer.choice = ToolChoice::automatic;
  }
  read_choice(fields, api, offer);
  if (!fields.flag("parallel_tool_calls", true)) offer.most = CallCount::one;
  return offer;
}

RequiredCall required_call(const ToolOffer& offer, CallFormat format) {
  const bool is_list = format == CallFormat::list;
  auto ways = Json::array();
  for (const auto& tool : offer.tools) {
    const auto& function = tool["function"];
    if (std::ranges::find(offer.callable, function["name"].get<std::string>()) == offer.callable.end())
      continue;
    Json parameters{{"type", "object"}};
    if (function.contains("parameters") && !function["parameters"].is_null())
      parameters = function["parameters"];
    const auto* const key = arguments_key(format);
    move_references(parameters,
                    fmt::format("{}/anyOf/{}/properties/{}", is_list ? "/items" : "", ways.size(), key));
    ways.push_back({{"type", "object"},
                    {"properties", {{"name", {{"const", function["name"]}}}, {key, std::move(parameters)}}},
                    {"required", {"name", key}}});
  }
  Json schema{{"anyOf", std::move(ways)}};
  if (is_list) {
    schema = {{"type", "array"}, {"items", std::move(schema)}, {"minItems", 1}};
    if (offer.most == CallCount::one) schema["maxItems"] = 1;
  }
  const char* const beginning = is_list ? "[TOOL_CALLS]" : format == CallFormat::tags ? "<tool_call>\n" : "";
  return {.beginning = beginning, .schema = json_text(schema)};
}

Json read_arguments(const std::string& text) {
  auto parsed = ordered_json_or_null(text);
  // What a model wrote need not be JSON: the template gets the text.
  return parsed.is_object() ? parsed : Json(text);
}

Json tool_call_json(const std::string& id, const std::string& name, const std::string& arguments) {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", read_arguments(arguments)}}}};
}

CallReader::CallReader(CallFormat format, const ToolOffer& offer)
    : format_(format), most_(offer.most), callable_(offer.callable) {
  // The tags of a required call are not part of the answer.
  if (offer.choice == ToolChoice::required && format == CallFormat::tags) format_ = CallFormat::object;
}

/// Adds the calls of a JSON text; false if it is none of calls.
bool CallReader::add_calls(std::string_view text, Found& found) {
  auto document = ordered_json_or_null(text);
  if (document.is_object()) document = Json::array({std::move(document)});
  if (!document.is_array() || document.empty()) return false;
  std::vector<ToolCall> calls;
  for (const auto& call : document) {
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return false;
    const auto name = call["name"].get<std::string>();
    const auto arguments = call.contains("arguments") ? call.find("arguments") : call.find("parameters");
    if (std::ranges::find(callable_, name) == callable_.end() || arguments == call.end() ||
        !arguments->is_object())
      return false;
    calls.push_back({.name = name, .arguments = shown_json(*arguments)});
  }
  for (auto& call : calls) {
    if (most_ == CallCount::one && n_calls_ > 0) break;
    ++n_calls_;
    found.calls.push_back(std::move(call));
  }
  return true;
}

CallReader::Found CallReader::read(std::string_view piece, Rest rest) {
  Found found;
  held_ += piece;
  if (format_ != CallFormat::tags) {
    const size_t first = held_.find_first_not_of(" \t\r\n");
    const char opening = format_ == CallFormat::list ? '[' : '{';
    is_text_ = is_text_ || (first != held_.npos && held_[first] != opening);
    if (!is_text_ && rest == Rest::follows) return found;
    if (is_text_ || !add_calls(held_, found)) found.text = held_;
    held_.clear();
    return found;
  }
  for (;;) {
    const size_t open = held_.find(kOpen);
    if (open == held_.npos) break;
    const size_t close = held_.find(kClose, open);
    if (close == held_.npos && rest == Rest::follows) break;
    // At the end, the model may have left the closing tag out.
    const size_t from = open + kOpen.size(), end = std::min(close, held_.size());
    const size_t after = std::min(close == held_.npos ? end : end + kClose.size(), held_.size());
    const auto before = std::string_view(held_).substr(0, open);
    const bool is_call = add_calls(std::string_view(held_).substr(from, end - from), found);
    // Blanks between calls and before the first one belong to the format.
    found.text += is_call ? without_blanks_at_end(before) : before;
    if (!is_call) found.text += held_.substr(open, after - open);
    held_.erase(0, after);
  }
  const size_t open = held_.find(kOpen);
  auto sure = std::string_view(held_).substr(0, open);
  if (rest == Rest::follows) {
    // The end may be the beginning of a tag, or a blank before one.
    size_t n = open == held_.npos ? std::min(held_.size(), kOpen.size() - 1) : 0;
    while (n > 0 && !held_.ends_with(kOpen.substr(0, n))) --n;
    sure.remove_suffix(n);
  }
  if (rest == Rest::follows || n_calls_ > 0) sure = without_blanks_at_end(sure);
  found.text += sure;
  held_.erase(0, sure.size());
  return found;
}

}  // namespace zoo
