#include <sys/stat.h>

#include <cerrno>

#include "base/text.hpp"
#include "daemon/workers/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "nvmetcp/device_owner.hpp"
#include "nvmetcp/exclusions.hpp"
#include "nvmetcp/host_identity.hpp"
#include "nvmetcp/libnvme_gateway.hpp"
#include "nvmetcp/libnvme_reservations.hpp"
#include "nvmetcp/rescan.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/smart.hpp"
#include "nvmetcp/timers.hpp"

namespace spark::workers {
namespace {

nvmetcp::Portal portal_of(const json::object& request) {
  const json::object* portal = get_object(request, "portal");
  return portal == nullptr ? nvmetcp::Portal{} : portal_from_json(*portal);
}

using Act = Result<nvmetcp::Holding> (*)(nvmetcp::ReservationCommands&, const nvmetcp::Claimant&);

Result<nvmetcp::Holding> release_it(nvmetcp::ReservationCommands& commands, const nvmetcp::Claimant& us) {
  const auto released = nvmetcp::release_reservation(commands, us);
  if (!released) return tl::unexpected<Error>(released.error());
  return nvmetcp::look_at_reservation(commands, us);
}

Act act_of(const std::string& name) {
  if (name == "hold") return nvmetcp::hold_reservation;
  if (name == "keep") return nvmetcp::keep_reservation;
  if (name == "take") return nvmetcp::take_reservation;
  return name == "release" ? release_it : nvmetcp::look_at_reservation;
}

// No person asks here, so no connection may be made that the host's administrator excludes, for a question
// neither. Unsupported, as of a target without the service: whether the volume may be connected is told then.
Result<> check_may_ask(const SystemRoot& root, const nvmetcp::Portal& portal,
                       const nvmetcp::HostIdentity& host, const std::string& interface) {
  const auto addresses = nvmetcp::resolve(portal);
  if (!addresses) return tl::unexpected<Error>(addresses.error());
  for (const nvmetcp::Portal& numeric : *addresses) {
    const auto allowed = nvmetcp::check_not_excluded(root, nvmetcp::kDiscoveryNqn, numeric, host, interface);
    if (!allowed) return fail(Errc::Unsupported, allowed.error().what, allowed.error().hint);
  }
  return {};
}

// Names of devices move: what is reserved has to be the volume's.
Result<> check_owner(const SystemRoot& root, const std::string& device, const std::string& subsystem) {
  struct stat status {};
  if (::stat(device.c_str(), &status) != 0) return fail_errno(errno, "looking at " + printable(device));
  const auto owner = nvmetcp::subsystem_of_device(root, status.st_rdev);
  if (!owner) return tl::unexpected<Error>(owner.error());
  if (*owner == subsystem) return {};
  return fail(Errc::Unavailable, printable(device) + " belongs to " + printable(*owner) + " now, not to " +
                                     printable(subsystem));
}

nvmetcp::ConnectOptions options_of(const json::object& request) {
  const json::object* options = get_object(request, "options");
  return options == nullptr ? nvmetcp::ConnectOptions{} : connect_options_from_json(*options);
}

}  // namespace

// {"portal", "interface"} → discovery log
Result<json::object> discover_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return tl::unexpected<Error>(std::move(host.error()));
  const std::string interface = get_string(request, "interface").value_or("");
  if (auto may = check_may_ask(root, portal_of(request), *host, interface); !may)
    return tl::unexpected<Error>(std::move(may.error()));
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway.discover(portal_of(request), *host, interface).map([](const nvmetcp::DiscoveryLog& log) {
    return to_json(log);
  });
}

// {"portal", "interface"} → connection
Result<json::object> watch_discovery_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return tl::unexpected<Error>(std::move(host.error()));
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway.watch_discovery(portal_of(request), *host, get_string(request, "interface").value_or(""))
      .map([](const nvmetcp::Connection& connection) { return to_json(connection); });
}

// {"controller"} → discovery log
Result<json::object> read_discovery_verb(const json::object& request, const ProgressLine& /*progress*/) {
  nvmetcp::LibnvmeGateway gateway{SystemRoot{}};
  return gateway.read_discovery(get_string(request, "controller").value_or(""))
      .map([](const nvmetcp::DiscoveryLog& log) { return to_json(log); });
}

// {"portal"} → {"addresses"}: numeric
Result<json::object> resolve_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto found = nvmetcp::resolve(portal_of(request));
  if (!found) return tl::unexpected<Error>(found.error());
  json::array addresses;
  for (const nvmetcp::Portal& portal : *found) addresses.emplace_back(portal.address);
  return json::object{{"addresses", std::move(addresses)}};
}

// {"subsystem", "portal", "options"} → connection
Result<json::object> connect_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return tl::unexpected<Error>(std::move(host.error()));
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway
      .connect(get_string(request, "subsystem").value_or(""), portal_of(request), *host, options_of(request))
      .map([](const nvmetcp::Connection& connection) { return to_json(connection); });
}

// {"controller", "subsystem", "options"} → {}
Result<json::object> timers_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto changed =
      nvmetcp::change_timers(SystemRoot{}, get_string(request, "controller").value_or(""),
                             get_string(request, "subsystem").value_or(""), options_of(request));
  if (!changed) return tl::unexpected<Error>(changed.error());
  return json::object{};
}

// {"controller", "subsystem"} → {}
Result<json::object> rescan_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto asked = nvmetcp::rescan_namespaces(SystemRoot{}, get_string(request, "controller").value_or(""),
                                                get_string(request, "subsystem").value_or(""));
  if (!asked) return tl::unexpected<Error>(asked.error());
  return json::object{};
}

// {"controller", "subsystem", "cut_off"?: also who uses it} → {"done"}
Result<json::object> disconnect_verb(const json::object& request, const ProgressLine& /*progress*/) {
  nvmetcp::LibnvmeGateway gateway{SystemRoot{}};
  return gateway
      .disconnect(
          get_string(request, "controller").value_or(""), get_string(request, "subsystem").value_or(""),
          get_bool(request, "cut_off").value_or(false) ? nvmetcp::Users::CutOff : nvmetcp::Users::Spared)
      .map([](Change change) { return to_json(change); });
}

// {"controller"} → smart
Result<json::object> smart_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return nvmetcp::read_smart(get_string(request, "controller").value_or(""))
      .map([](const nvmetcp::Smart& smart) { return to_json(smart); });
}

// {"act": "look", "hold", "keep", "take" or "release", "device", "subsystem", "nsid"} → holding
Result<json::object> reservation_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const SystemRoot root;
  const auto host = nvmetcp::read_host_identity(root);
  if (!host) return tl::unexpected<Error>(host.error());
  const nvmetcp::Claimant us = nvmetcp::claimant(*host, nvmetcp::read_machine(root));
  const auto nsid = static_cast<std::uint32_t>(get_int(request, "nsid").value_or(0));
  const std::string device = get_string(request, "device").value_or("");
  if (auto ours = check_owner(root, device, get_string(request, "subsystem").value_or("")); !ours)
    return tl::unexpected<Error>(std::move(ours.error()));
  auto commands = nvmetcp::LibnvmeReservations::open(device, nsid);
  if (!commands) return tl::unexpected<Error>(std::move(commands.error()));
  return act_of(get_string(request, "act").value_or(""))(*commands, us)
      .map([](const nvmetcp::Holding& holding) { return to_json(holding); });
}

}  // namespace spark::workers
