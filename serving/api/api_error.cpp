#include "serving/api/api_error.h"

#include <new>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "base/tensor_memory.h"
#include "base/text.h"
#include "generation/prompt.h"
#include "io/json_document.h"
#include "serving/service_error.h"

namespace zoo {
namespace {

/// Messages may quote what a client sent.
constexpr size_t kMostMessageBytes = 2000;

int status_of(ServiceProblem problem) {
  switch (problem) {
    case ServiceProblem::unknown_model:
      return 404;
    case ServiceProblem::unable:
      return 400;
    case ServiceProblem::busy:
      return 429;
    case ServiceProblem::stopping:
    case ServiceProblem::too_large:
      return 503;
  }
  return 500;
}

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError as_api_error(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const ApiError& error) {
    return error;
  } catch (const ServiceError& error) {
    const bool is_unknown = error.problem() == ServiceProblem::unknown_model;
    return {status_of(error.problem()), error.what(), is_unknown ? "model" : "",
            is_unknown ? "model_not_found" : ""};
  } catch (const TextTooLongError& error) {
    return {400, error.what(), "", "context_length_exceeded"};
  } catch (const BusyError& error) {
    return {429, error.what()};
  } catch (const CheckpointError& error) {
    return {500, error.what()};
  } catch (const Error& error) {
    return {error.exit_code() == 2 ? 400 : 500, error.what()};
  } catch (const c10::Error& error) {
    if (memory_shortage(error)) return {503, "the server is out of memory: ask for less, or later"};
    const std::string text = error.what_without_backtrace();
    return {500, text.substr(0, text.find('\n'))};
  } catch (const std::bad_alloc&) {
    return {503, "the server is out of memory: ask for less, or later"};
  } catch (const std::exception& error) {
    return {500, error.what()};
  }
}

nlohmann::ordered_json error_json(const ApiError& error) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"error",
           {{"message", excerpt(error.what(), kMostMessageBytes)},
            {"type", type_of(error.status())},
            {"param", or_null(error.param())},
            {"code", or_null(error.code())}}}};
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status(), .body = json_text(error_json(error)) + "\n"};
  if (!error.allowed().empty()) response.headers.emplace_back("Allow", error.allowed());
  if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status() == 429 || error.status() == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace zoo
