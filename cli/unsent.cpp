#include "cli/unsent.hpp"

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"

namespace spark::cli {

std::vector<std::string> output_names(Context& context) {
  std::vector<std::string> names;
  const auto configured = call(*context.client, {"GET", "/v1/outputs", {}});
  if (!configured) return names;
  for (const json::object* output : get_objects(*configured, "outputs"))
    names.push_back(get_text(*output, "name"));
  return names;
}

void tell_unsent(Context& context, const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) {
    const auto now =
        call(*context.client, {"GET", "/v1/outputs/" + percent_encoded(name), {}, kOutputPatience});
    if (!now) continue;
    if (const auto unsent = get_string(*now, "unsent"))
      warn(context, "spark-stage: output " + name + ": " + printable(*unsent));
  }
}

}  // namespace spark::cli
