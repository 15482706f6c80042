#include "serving/api/route.h"

#include <exception>
#include <utility>

#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"

namespace zoo {

nlohmann::ordered_json usage_of_reading(int64_t n_tokens) {
  return {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}};
}

std::function<void(const std::exception_ptr&)> sender_of_errors(const std::shared_ptr<HttpReply>& reply) {
  return [reply](const std::exception_ptr& problem) { reply->send(error_response(as_api_error(problem))); };
}

void answer_with_model(const ApiContext& context, const ApiCall& call, const std::string& model,
                       Ability ability, std::function<ModelAnswer(const ServedModel& model)> work) {
  const auto reply = call.reply;
  const auto fail = sender_of_errors(reply);
  reply->note({.model = model});
  context.service.with_model(
      model,
      [ability, model, reply, fail, client = call.request.client,
       work = std::move(work)](const std::shared_ptr<ModelWorker>& worker) {
        worker->model().require(ability);
        // The job must not keep the worker, which waits for its jobs.
        auto job = [reply, fail, work, model,
                    served = worker->shared_model()](const std::exception_ptr& problem) mutable {
          try {
            if (problem) std::rethrow_exception(problem);
            const auto answer = work(*served);
            if (!answer) return JobState::has_more;
            reply->note({.model = model, .tokens_in = answer->tokens_in, .tokens_out = answer->tokens_out});
            reply->send(answer->response ? *answer->response : json_response(answer->document));
          } catch (const RefusedTexts& error) {
            reply->note({.model = model, .tokens_in = error.n_tokens()});
            fail(std::current_exception());
          } catch (...) {
            fail(std::current_exception());
          }
          return JobState::is_done;
        };
        const auto cancellation = worker->post(std::move(job), client);
        reply->on_gone([cancellation] { cancellation->request(); });
      },
      fail);
}

}  // namespace zoo
