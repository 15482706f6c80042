#pragma once
// Errors as OpenAI's API has them: {"error": {"message", "type", "param", "code"}}.

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "serving/http/http_message.h"

namespace zoo {

/// A request that is wrong.
class ApiError : public Error {
 public:
  /// param: the key of the request that is wrong; "" = none. code: what programs may look for; "" = none.
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : Error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  /// The methods that the path has, for status 405.
  const std::string& allowed() const { return allowed_; }
  ApiError allowing(std::string methods) && {
    allowed_ = std::move(methods);
    return std::move(*this);
  }

 private:
  int status_;
  std::string param_, code_, allowed_;
};

/// The status and the line for whatever was thrown. Errors of the library are the client's mistakes, except
/// for those of the machine and of the weights.
ApiError as_api_error(const std::exception_ptr& problem);

/// {"error": {…}}
nlohmann::ordered_json error_json(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace zoo
