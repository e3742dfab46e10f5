#include "nvmetcp/connect/libnvme_gateway.hpp"

#include <libnvme.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "base/text.hpp"
#include "nvmetcp/connect/connect_errors.hpp"
#include "nvmetcp/connect/fabrics_device.hpp"
#include "nvmetcp/connect/fabrics_options.hpp"
#include "nvmetcp/connect/removal.hpp"
#include "nvmetcp/connect/temporary_discovery_controller.hpp"
#include "nvmetcp/discovery/exclusions.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/security/tls.hpp"
#include "nvmetcp/sysfs/adoption.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "nvmetcp/sysfs/timers.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

const std::vector<std::string>& module_loader() {
  static const std::vector<std::string> command = {"/sbin/modprobe", "nvme-tcp"};
  return command;
}

unsigned online_cpus() {
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string major_minor(const std::string& version) {
  const auto parts = split(version, '.');
  return parts.size() < 2 ? version : parts[0] + "." + parts[1];
}

}  // namespace

// The first address that accepts a connection; then the driver is loaded, if it has to be.
Result<Portal> LibnvmeGateway::prepare(const std::vector<Portal>& addresses,
                                       const std::string& interface) const {
  Result<Portal> answering = fail(Errc::Unavailable, "the target's name has no address");
  for (const Portal& address : addresses) {
    auto reached = reach(address, interface, kReachDeadline);
    if (reached) {
      answering = address;
      break;
    }
    // Of several addresses the first is the one that people know.
    if (&address == &addresses.front()) answering = reached.take_error();
  }
  if (!answering) return answering;
  if (auto loaded = load_transport(root_, module_loader()); !loaded) {
    return loaded.take_error();
  }
  return answering;
}

Result<Connection> LibnvmeGateway::connect(const std::string& subsystem, const Portal& portal,
                                           const HostIdentity& host, const ConnectOptions& options) {
  for (auto valid : {validate_nqn(subsystem, "subsystem"), validate(portal), validate(options)}) {
    if (!valid) return valid.take_error();
  }
  auto addresses = resolve(portal);
  if (!addresses) return addresses.take_error();
  forget_gone(root_);
  auto all = list_controllers(root_);
  if (!all) return all.take_error();
  auto adopted = find_adoptable(*all, subsystem, *addresses, host, options.interface);
  if (!adopted) return adopted.take_error();
  if (*adopted) {
    auto used = use(**adopted, *all, host, options);
    if (!used) return used.take_error();
    if (*used) return std::move(**used);
  }
  if (auto alone = check_host_conflict(*all, host); !alone) {
    return alone.take_error();
  }
  auto reached = prepare(*addresses, options.interface);
  if (!reached) return reached.take_error();
  if (auto allowed = check_not_excluded(root_, subsystem, *reached, host, options.interface); !allowed) {
    return allowed.take_error();
  }
  return create(subsystem, *reached, host, options);
}

// An existing connection. None: it was disconnected, since its target may never have asked for the key; the
// next one is proven. A connection of this program is registered once it is proven. One without an entry was
// made by hand, or by a worker that was killed before the proof: a target that answers slowly can cause that.
// The kernel's settings show only which keys it would use if the target asked.
Result<std::optional<Connection>> LibnvmeGateway::use(const Controller& controller,
                                                      const std::vector<Controller>& all,
                                                      const HostIdentity& host,
                                                      const ConnectOptions& options) const {
  const auto keys = read_keys(options);
  if (!keys) return keys.take_error();
  const std::string doing = "taking over the connection to " + printable(controller.subsystem);
  auto keyed = check_keys_in_force(root_, controller.name, options, *keys);
  const bool is_renewed = !keyed && keyed.error().kind == Errc::Refused && controller.owner == kOwner &&
                          holds_keys(root_, controller.name, options);
  if (!keyed && !is_renewed) return fail_with(std::move(keyed.error()), doing);
  if (auto hidden = check_tls_in_force(root_, controller.name, options); !hidden)
    return fail_with(std::move(hidden.error()), doing);
  const bool is_unproven = !options.host_key_file.empty() && controller.owner.empty();
  if (is_unproven) {
    auto unused = check_spare(controller, all);
    if (unused) {
      // It could not be made again.
      auto allowed =
          check_not_excluded(root_, controller.subsystem, controller.portal, host, options.interface);
      if (!allowed) return fail_with(std::move(allowed.error()), doing);
      unused = remove_controller(root_, controller.name, controller.subsystem, CutOff{}, kRemovalDeadline)
                   .map([](Change) {});
      if (unused) return std::optional<Connection>();
    }
    if (unused.error().kind != Errc::Refused) return fail_with(std::move(unused.error()), doing);
  }
  Connection connection = adopt(controller, options);
  if (is_unproven) {  // in use
    connection.differences.push_back("whether " + controller.name + " was authenticated is not known: " +
                                     "nothing in /run/nvme/registry says who connected it, and it is in use");
  }
  if (is_renewed) {
    connection.differences.push_back(controller.name + " was connected with an earlier key than that in " +
                                     printable(options.host_key_file) +
                                     ", which is used from the next connection on");
  }
  return std::optional(std::move(connection));
}

// Refused: it is in use. So it is if the other paths are down: a new one may not come.
Result<> LibnvmeGateway::check_spare(const Controller& controller, const std::vector<Controller>& all) const {
  std::vector<std::string> lost{controller.name};
  for (const Controller& other : all)
    if (other.subsystem == controller.subsystem && !other.is_live()) lost.push_back(other.name);
  return check_unused(root_, lost, CutOff{});
}

Connection LibnvmeGateway::adopt(const Controller& controller, const ConnectOptions& options) const {
  if (!is_foreign(controller)) {
    if (!differences(root_, controller, options).empty()) set_timers(root_, controller, options);
    // Without an entry everything but `nvme disconnect-all` works all the same.
    if (controller.owner.empty()) (void)claim(root_, controller.name);
  }
  return {controller.name, Change::AlreadyThere, differences(root_, controller, options)};
}

Result<Connection> LibnvmeGateway::create(const std::string& subsystem, const Portal& numeric,
                                          const HostIdentity& host, const ConnectOptions& options) const {
  const auto keys = read_keys(options);
  if (!keys) return keys.take_error();
  const FabricsOptions asked = io_controller_options(subsystem, numeric, host, options, online_cpus(), *keys);
  if (auto known = check_supported(root_, asked); !known) {
    return known.take_error();
  }
  if (!options.tls_psk_file.empty()) {
    const auto key = read_tls_key(options);
    if (!key) return key.take_error();
    if (auto inserted = insert_tls_key(*key, host.nqn, subsystem); !inserted) return inserted.take_error();
  }
  const auto controller = create_numbered(asked, numeric, host, options);
  if (!controller) {
    const ConnectAttempt attempt{subsystem, to_string(numeric), host.nqn, options};
    const RefusedConnect& refused = controller.error();
    return fail(explain_connect(refused.number, refused.kernel_log, attempt));
  }
  forget_earlier(root_, controller->name);
  set_io_policy(root_, controller->name, options);
  auto proven = prove(*controller, subsystem, options, *keys);
  if (proven) {
    (void)claim(root_, controller->name);
    return Connection{controller->name, Change::Done, {}};
  }
  // Not as configured: disconnect. If that fails too, the first error is still the one to report.
  const auto its_nqn = read_line_file(root_ / ("sys/class/nvme/" + controller->name + "/subsysnqn"));
  (void)remove_controller(root_, controller->name, its_nqn.value_or(subsystem), CutOff{true, {}},
                          kRemovalDeadline);
  return proven.take_error();
}

// A target that has moved, or has forgotten a connection that this host still tries to restore, may give the
// next one the same number (cntlid), which the kernel refuses. Linux's target gives the lowest that is free:
// connections to its discovery service, held meanwhile, take those. Others count on, and need another try.
tl::expected<MadeController, RefusedConnect> LibnvmeGateway::create_numbered(
    const FabricsOptions& asked, const Portal& numeric, const HostIdentity& host,
    const ConnectOptions& options) const {
  constexpr std::size_t kMostHeld = 4;
  std::list<TemporaryDiscoveryController>
      notes;  // the finder of a killed program's note removes its controller
  std::vector<std::string> held;
  auto made = create_controller(root_, asked);
  while (!made && is_number_taken(made.error().kernel_log) && held.size() < kMostHeld &&
         options.tls_psk_file.empty()) {
    const auto holds = create_discovery(numeric, host, options.interface, DiscoveryUse::Once);
    if (!holds) break;
    notes.emplace_back(root_, holds->name);
    held.push_back(holds->name);
    made = create_controller(root_, asked);
  }
  for (const std::string& name : held) (void)remove_discovery(name);
  return made;
}

Result<> LibnvmeGateway::prove(const MadeController& made, const std::string& subsystem,
                               const ConnectOptions& options, const Keys& keys) const {
  const std::string& name = made.name;
  const auto all = list_controllers(root_);
  if (!all) return all.take_error();
  const auto found = std::find_if(all->begin(), all->end(),
                                  [&](const Controller& controller) { return controller.name == name; });
  if (found == all->end()) {
    return fail(Errc::Unavailable, "connecting subsystem " + printable(subsystem) + ": " + name +
                                       " vanished right after its connect");
  }
  if (found->subsystem != subsystem) {
    return fail(Errc::Mismatch,
                "connecting subsystem " + printable(subsystem) + ": the target answered as " +
                    printable(found->subsystem),
                "give the subsystem the name that it gives itself");
  }
  for (auto secured :
       {check_keys_in_force(root_, name, options, keys), check_authenticated(made.kernel_log, name, options),
        check_tls_in_force(root_, name, options)}) {
    if (!secured)
      return fail_with(std::move(secured.error()), "connecting subsystem " + printable(subsystem));
  }
  const auto wrong = differences(root_, *found, options);
  if (wrong.empty()) return {};
  return fail(Errc::Unsupported,
              "connecting subsystem " + printable(subsystem) +
                  ": the kernel did not take every option: " + join(wrong, "; "),
              "switch the option off in the config, or boot another kernel");
}

Result<Change> LibnvmeGateway::disconnect(const std::string& controller, const std::string& subsystem,
                                          const CutOff& cut_off) {
  return remove_controller(root_, controller, subsystem, cut_off, kRemovalDeadline);
}

Result<> check_libnvme_version() {
  const std::string built_for = major_minor(SPARK_LIBNVME_VERSION);
  const std::string loaded = major_minor(nvme_get_version(NVME_VERSION_PROJECT));
  if (loaded == built_for) return {};
  return fail(
      Errc::Unsupported,
      "this program was built for libnvme " + built_for + ", libnvme " + printable(loaded) + " is loaded",
      "install the package that was built for this distribution, or build it here");
}

}  // namespace spark::nvmetcp
