#include <sys/stat.h>

#include <cerrno>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/connect/removal.hpp"
#include "nvmetcp/device/device_owner.hpp"
#include "nvmetcp/device/smart.hpp"
#include "nvmetcp/discovery/exclusions.hpp"
#include "nvmetcp/host_identity.hpp"
#include "nvmetcp/reservations/libnvme_reservations.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/rescan.hpp"
#include "nvmetcp/sysfs/timers.hpp"

namespace spark::workers {
namespace {

using Act = Result<nvmetcp::ReservationState> (*)(nvmetcp::ReservationCommands&,
                                                  const nvmetcp::LocalRegistrant&);

Result<nvmetcp::ReservationState> release_it(nvmetcp::ReservationCommands& commands,
                                             const nvmetcp::LocalRegistrant& us) {
  const auto released = nvmetcp::release_reservation(commands, us);
  if (!released) return released.take_error();
  return nvmetcp::look_at_reservation(commands, us);
}

Act act_of(const std::string& name) {
  if (name == "hold") return nvmetcp::hold_reservation;
  if (name == "keep") return nvmetcp::keep_reservation;
  if (name == "take") return nvmetcp::take_reservation;
  return name == "release" ? release_it : nvmetcp::look_at_reservation;
}

// These connections are automatic, so none may be made that the host's administrator excludes, not even for a
// query. Unsupported, like a target without the service: whether the volume may be connected is reported
// later.
Result<> check_may_ask(const SystemRoot& root, const nvmetcp::Portal& portal,
                       const nvmetcp::HostIdentity& host, const std::string& interface) {
  const auto addresses = nvmetcp::resolve(portal);
  if (!addresses) return addresses.take_error();
  for (const nvmetcp::Portal& numeric : *addresses) {
    const auto allowed = nvmetcp::check_not_excluded(root, nvmetcp::kDiscoveryNqn, numeric, host, interface);
    if (!allowed) return fail(Errc::Unsupported, allowed.error().what, allowed.error().hint);
  }
  return {};
}

// Device names can be reassigned, so checks that the device is the volume's.
Result<> check_owner(const SystemRoot& root, const std::string& device, const std::string& subsystem) {
  struct stat status {};
  if (::stat(device.c_str(), &status) != 0) return fail_errno(errno, "looking at " + printable(device));
  const auto owner = nvmetcp::owner_of_device(root, status.st_rdev);
  if (!owner) return owner.take_error();
  if (owner->subsystem == subsystem) return {};
  return fail(Errc::Unavailable, printable(device) + " belongs to " + printable(owner->subsystem) +
                                     " now, not to " + printable(subsystem));
}

}  // namespace

// {"portal", "interface"} → discovery log
Result<json::object> discover_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto portal = member_of<nvmetcp::Portal>(request, "portal");
  if (!portal) return portal.take_error();
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return host.take_error();
  const std::string interface = get_text(request, "interface");
  if (auto may = check_may_ask(root, *portal, *host, interface); !may) return may.take_error();
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway.discover(*portal, *host, interface).map(to_message<nvmetcp::DiscoveryLog>);
}

// {"portal", "interface"} → connection
Result<json::object> watch_discovery_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto portal = member_of<nvmetcp::Portal>(request, "portal");
  if (!portal) return portal.take_error();
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return host.take_error();
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway.watch_discovery(*portal, *host, get_text(request, "interface"))
      .map(to_message<nvmetcp::Connection>);
}

// {"controller"} → discovery log
Result<json::object> read_discovery_verb(const json::object& request, const ProgressLine& /*progress*/) {
  nvmetcp::LibnvmeGateway gateway{SystemRoot{}};
  return gateway.read_discovery(get_text(request, "controller")).map(to_message<nvmetcp::DiscoveryLog>);
}

// {"portal"} → {"addresses"}: numeric
Result<json::object> resolve_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto portal = member_of<nvmetcp::Portal>(request, "portal");
  if (!portal) return portal.take_error();
  const auto found = nvmetcp::resolve(*portal);
  if (!found) return found.take_error();
  json::array addresses;
  for (const nvmetcp::Portal& portal : *found) addresses.emplace_back(portal.address);
  return json::object{{"addresses", std::move(addresses)}};
}

// {"subsystem", "portal", "options"} → connection
Result<json::object> connect_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto portal = member_of<nvmetcp::Portal>(request, "portal");
  if (!portal) return portal.take_error();
  const auto options = member_of<nvmetcp::ConnectOptions>(request, "options");
  if (!options) return options.take_error();
  const SystemRoot root;
  auto host = nvmetcp::read_host_identity(root);
  if (!host) return host.take_error();
  nvmetcp::LibnvmeGateway gateway(root);
  return gateway.connect(get_text(request, "subsystem"), *portal, *host, *options)
      .map(to_message<nvmetcp::Connection>);
}

// {"controller", "subsystem", "options"} → {}
Result<json::object> timers_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto options = member_of<nvmetcp::ConnectOptions>(request, "options");
  if (!options) return options.take_error();
  return empty_answer(nvmetcp::change_timers(SystemRoot{}, get_text(request, "controller"),
                                             get_text(request, "subsystem"), *options));
}

// {"controller", "subsystem"} → {}
Result<json::object> rescan_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return empty_answer(nvmetcp::rescan_namespaces(SystemRoot{}, get_text(request, "controller"),
                                                 get_text(request, "subsystem")));
}

// {"controller", "subsystem", "leaving"?: all controllers that go with it, "cut_off"?: devices in use that
// may be lost} → {"done"}
Result<json::object> disconnect_verb(const json::object& request, const ProgressLine& /*progress*/) {
  nvmetcp::LibnvmeGateway gateway{SystemRoot{}};
  const auto cut_off = member_of<nvmetcp::CutOff>(request, "cut_off").value_or(nvmetcp::CutOff{});
  const auto leaving = get_strings(request, "leaving");
  if (auto free = nvmetcp::check_unused(SystemRoot{}, leaving, cut_off); !free) return free.take_error();
  return gateway.disconnect(get_text(request, "controller"), get_text(request, "subsystem"), cut_off)
      .map([](Change change) { return to_json(change); });
}

// {"controller"} → smart
Result<json::object> smart_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return nvmetcp::read_smart(get_text(request, "controller")).map(to_message<nvmetcp::Smart>);
}

// {"act": "look", "hold", "keep", "take" or "release", "device", "subsystem", "nsid"} → holding
Result<json::object> reservation_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const SystemRoot root;
  const auto host = nvmetcp::read_host_identity(root);
  if (!host) return host.take_error();
  const nvmetcp::LocalRegistrant us = nvmetcp::local_registrant(*host, nvmetcp::read_machine(root));
  const auto nsid = static_cast<std::uint32_t>(get_int(request, "nsid").value_or(0));
  const std::string device = get_text(request, "device");
  if (auto ours = check_owner(root, device, get_text(request, "subsystem")); !ours) return ours.take_error();
  const std::string act = get_text(request, "act");
  // Its writer needs the reservation.
  if (act == "release" && is_device_claimed(device))
    return fail(Errc::Refused, printable(device) + " is still in use on this host, perhaps in a container");
  auto commands = nvmetcp::LibnvmeReservations::open(device, nsid);
  if (!commands) return commands.take_error();
  return act_of(act)(*commands, us).map(to_message<nvmetcp::ReservationState>);
}

}  // namespace spark::workers
