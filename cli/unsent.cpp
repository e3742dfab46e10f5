#include "cli/unsent.hpp"

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"

namespace spark::cli {

void tell_unsent(Context& context) {
  const auto configured = call(*context.client, {"GET", "/v1/outputs", {}});
  if (!configured) return;
  const json::array* outputs = get_array(*configured, "outputs");
  for (std::size_t i = 0; outputs != nullptr && i < outputs->size(); ++i) {
    const json::object* output = (*outputs)[i].if_object();
    if (output == nullptr) continue;
    const std::string name = get_string(*output, "name").value_or("");
    const auto now =
        call(*context.client, {"GET", "/v1/outputs/" + percent_encoded(name), {}, kOutputPatience});
    if (!now) continue;
    if (const auto unsent = get_string(*now, "unsent"))
      warn(context, "spark-stage: output " + name + ": " + printable(*unsent));
  }
}

}  // namespace spark::cli
