#pragma once

#include <string>

#include "base/error.h"

namespace zoo {

/// Why a service does not do what it is asked for.
enum class ServiceProblem {
  unknown_model,  // there is no model of this name
  unable,         // the model cannot do this
  busy,           // too much is under way: ask again later
  stopping,       // the service ends
  too_large,      // the model does not fit into the memory limit
};

class ServiceError : public Error {
 public:
  ServiceError(ServiceProblem problem, const std::string& message) : Error(message), problem_(problem) {}
  ServiceProblem problem() const { return problem_; }

 private:
  ServiceProblem problem_;
};

}  // namespace zoo
