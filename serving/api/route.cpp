#include "serving/api/route.h"

#include <exception>
#include <utility>

#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"

namespace zoo {

void answer_with_model(const ApiContext& context, const ApiCall& call, const std::string& model,
                       Ability ability,
                       std::function<nlohmann::ordered_json(const ServedModel& model)> work) {
  const auto reply = call.reply;
  const auto fail = [reply](const std::exception_ptr& problem) {
    reply->send(error_response(as_api_error(problem)));
  };
  reply->note({.model = model});
  context.service.with_model(
      model,
      [ability, reply, fail, work = std::move(work)](const std::shared_ptr<ModelWorker>& worker) {
        worker->model().require(ability);
        // The job must not keep the worker, which waits for its jobs.
        const auto cancellation = worker->post(
            [reply, fail, work, served = worker->shared_model()](const std::exception_ptr& problem) {
              if (problem) return fail(problem);
              try {
                send_json(*reply, work(*served));
              } catch (...) {
                fail(std::current_exception());
              }
            });
        reply->on_gone([cancellation] { cancellation->request(); });
      },
      fail);
}

}  // namespace zoo
