// The other hosts of the fleet, as the daemon last heard them.
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {
namespace {

constexpr char kArea[] = "fleet";

std::int64_t link_of(const json::object& object) {
  return get_int(object, "link_bytes_per_second").value_or(0);
}

void check_peer(const json::object& own, const std::string& version, const json::object& peer,
                Report& report) {
  const std::string name = get_shown(peer, "name");
  if (!get_bool(peer, "answers").value_or(false)) {
    report.note(kArea, "peer " + name + " does not answer: " + get_shown(peer, "reason"),
                "its datasets are read from the volume instead",
                "on " + name + ": systemctl status spark-staged; spark-stage status");
    return;
  }
  if (const std::string other = get_shown(peer, "version"); other != version)
    report.note(kArea, "peer " + name + " has version " + other + ", this host has " + version,
                "hosts exchange only messages that both versions know",
                "install the same version on all hosts");
  if (link_of(peer) > 0 && link_of(own) > 0 && link_of(peer) < link_of(own))
    report.note(kArea,
                "peer " + name + " is reached on " + get_shown(peer, "interface") + " with " +
                    format_rate(static_cast<double>(link_of(peer))) + ", this host has " +
                    format_rate(static_cast<double>(link_of(own))),
                "the slowest link limits the exchange",
                "give an address of the fast network as fleet.listen on " + name);
}

}  // namespace

void check_fleet(const Host& host, Report& report) {
  if (host.settings().fleet.listen.empty()) return;
  const std::size_t before = report.findings.size();
  const auto status = host.ask_daemon();
  const json::object* fleet = status ? get_object(*status, "fleet") : nullptr;
  if (fleet == nullptr) {
    report.unknown.push_back("fleet: " + (status ? "the daemon does not follow this configuration yet"
                                                 : status.error().message()));
    return;
  }
  if (const auto why = get_string(*fleet, "reason"))
    report.wrong(kArea, "peers are not served: " + printable(*why),
                 "they read this host's datasets from the volume",
                 "check fleet.listen and fleet.key_file; then: sudo systemctl reload spark-staged");
  std::size_t answering = 0;
  for (const json::object& peer : objects_in(*fleet, "peers")) {
    check_peer(*fleet, get_shown(*status, "version"), peer, report);
    if (get_bool(peer, "answers").value_or(false)) ++answering;
  }
  report.fine_since(before, "fleet: " + std::to_string(answering) + " peers answer");
}

}  // namespace spark::doctor
