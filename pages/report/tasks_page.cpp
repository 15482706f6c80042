#include "pages/report/tasks_page.h"

#include "pages/json.h"
#include "pages/page_template.h"
#include "pages/tables/report_document.h"
#include "pages/tables/task_document.h"

namespace zoo {

namespace embedded {
extern const char tasks_page[];
}

std::string tasks_page(const Json& results) {
  check_task_results(results);
  const auto title = text_at(results, "title");
  return filled_page(embedded::tasks_page,
                     "Comparison: " + (title.empty() ? text_at(results, "name") : title),
                     as_json_text(results));
}

}  // namespace zoo
