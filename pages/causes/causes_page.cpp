#include "pages/causes/causes_page.h"

#include "data/images/image_file.h"
#include "pages/causes/cause_views.h"
#include "pages/json.h"
#include "pages/page_picture.h"
#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char causes_page[];
}  // namespace embedded

namespace {

std::string page(const Json& view) {
  const auto title = view["kind"].get<std::string>() + ": " + view["title"].get<std::string>();
  return filled_page(embedded::causes_page, title, as_json_text(view));
}

}  // namespace

std::string lens_page(const LensReport& report, const std::optional<LensContributions>& contributions) {
  return page(lens_view(report, contributions));
}

std::string ablation_page(const AblationReport& report) { return page(ablation_view(report)); }

std::string patch_page(const PatchReport& report) { return page(patch_view(report)); }

std::string attribution_page(const AttributionReport& report) {
  auto view = attribution_view(report);
  if (report.picture) {
    const auto picture = read_image(report.question.input, Follow::everything, 3);
    view["pictures"][0]["size"] = {picture.shape.width, picture.shape.height};
    view["pictures"][0]["address"] = picture_uri(picture);
  }
  return page(view);
}

}  // namespace zoo
