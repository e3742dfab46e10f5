// The daemon's refusals, which need an administrator: other writers, copied identities, other file systems.
#include "base/text.hpp"
#include "doctor/checks/copied_identity.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {

void check_volumes(const Host& host, Report& report) {
  const auto status = host.ask_daemon();
  if (!status) return;  // the check of the daemon has reported that
  const std::size_t before = report.findings.size();
  const auto volumes = objects_in(*status, "volumes");
  for (const json::object& volume : volumes) {
    if (get_string(volume, "state") != "refused") continue;
    const std::string name = printable(get_string(volume, "name").value_or("?"));
    const std::string reason = get_shown(volume, "reason");
    // The effect of a copied identity is reported with its other signs.
    const bool is_identity = reason.find("host new-identity") != std::string::npos;
    report.wrong(is_identity ? kIdentityArea : "volume", "volume " + name + " is refused: " + reason,
                 "it is not mounted until an administrator decides",
                 is_identity ? std::string("on the copy: ") + kRenew
                             : "once that is fixed: sudo spark-stage volumes up " + name);
  }
  if (!volumes.empty()) report.fine_since(before, "the daemon's volumes");
}

}  // namespace spark::doctor
