// The controllers that are connected now, against the configuration.
#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "nvmetcp/sysfs/timers.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::doctor {
namespace {

constexpr char kConnectionArea[] = "connection";
constexpr long kManyQueues = 16, kUsualQueues = 8;  // for I/O
constexpr long kLongKeepAlive = 30;                 // seconds; the kernel's own is 5

bool has_address(const config::Config& config, const config::Volume& volume, const std::string& address) {
  const auto target = config.targets.find(volume.nvme->target);
  return target != config.targets.end() &&
         std::ranges::any_of(target->second.portals, [&](const nvmetcp::Portal& portal) {
           return nvmetcp::same_address(portal.address, address);
         });
}

// Two targets may offer one name. A target that is named by its host name is asked for no address here.
const config::Volume* volume_of(const config::Config& config, const nvmetcp::Controller& controller) {
  const config::Volume* by_name = nullptr;
  for (const config::Volume& volume : config.volumes) {
    if (!volume.nvme || volume.nvme->subsystem != controller.subsystem) continue;
    if (has_address(config, volume, controller.portal.address)) return &volume;
    if (by_name == nullptr) by_name = &volume;
  }
  return by_name;
}

void check_state(const nvmetcp::Controller& controller, const std::string& who, Report& report) {
  if (controller.is_live()) return;
  report.wrong(kConnectionArea, who + " is '" + printable(controller.state) + "', not live",
               "reads of its volume wait or fail",
               "sudo dmesg | grep " + controller.name + "; spark-stage status");
}

void check_settings(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                    const config::Target& target, Report& report) {
  const auto differences = nvmetcp::differences(host.root, controller, target.options);
  if (differences.empty()) return;
  report.note(kConnectionArea, who + ": " + printable(join(differences, "; ")),
              "it was connected before with these; the volume does not behave as configured",
              "with its jobs stopped: sudo spark-stage volumes down NAME, then up NAME");
}

std::optional<long> number_of(const Host& host, const nvmetcp::Controller& controller, const char* file) {
  const auto text = read_line_file(host.root / "sys/class/nvme" / controller.name / file);
  return text ? leading_number<long>(*text) : std::nullopt;
}

// Queues for I/O: the kernel counts the one for administration too.
std::optional<long> io_queues_of(const Host& host, const nvmetcp::Controller& controller) {
  const auto all = number_of(host, controller, "queue_count");
  return all && *all > 0 ? std::optional(*all - 1) : std::nullopt;
}

std::string in_words(long queues) {
  return std::to_string(queues) + (queues == 1 ? " I/O queue" : " I/O queues");
}

// The kernel asks for no more than it has CPUs, and the target may grant fewer than were asked for.
void check_configured_queues(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                             const config::Target& target, Report& report) {
  const auto has = io_queues_of(host, controller);
  if (!has) return;
  const unsigned configured = target.options.io_queues;
  const unsigned asked = configured != 0 ? configured : nvmetcp::automatic_io_queues(host.cpus);
  const long wanted = std::min(asked, host.cpus);
  if (*has == wanted) return;
  const std::string again = "with its jobs stopped: sudo spark-stage volumes down NAME, then up NAME";
  report.note(
      kConnectionArea,
      who + " has " + in_words(*has) + ", not " + std::to_string(wanted) + " as `io_queues` has it",
      *has > wanted ? "it was connected before with more, each a TCP connection"
                    : "it was connected before with fewer, or its target grants no more",
      *has > wanted
          ? again
          : again + "; if they stay so few, write `io_queues: " + std::to_string(std::max(*has, 1L)) + "`");
}

// Somebody else's connection over TCP: the kernel's default gives it up after ten minutes.
void check_foreign_loss(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                        Report& report) {
  const auto loss = number_of(host, controller, "ctrl_loss_tmo");
  if (!loss || *loss <= 0) return;
  report.note(kConnectionArea,
              who + " is given up " + std::to_string(*loss) + " s after its target went away",
              "the device is then removed under its mount, and does not come back",
              "spark-stage import: let the daemon keep it; or: echo -1 | sudo tee /sys/class/nvme/" +
                  controller.name + "/ctrl_loss_tmo");
}

void check_foreign_keep_alive(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                              Report& report) {
  const auto keep_alive = number_of(host, controller, "kato");
  if (!keep_alive || (*keep_alive > 0 && *keep_alive <= kLongKeepAlive)) return;
  const bool none = *keep_alive <= 0;
  report.note(
      kConnectionArea,
      who + (none ? " has no keep-alive" : " has a keep-alive of " + std::to_string(*keep_alive) + " s"),
      none ? "the loss of its target is noticed only by a read, after half a minute"
           : "the loss of its target may be noticed only after that time",
      "connect with `keep_alive: 5s` (or `nvme connect --keep-alive-tmo=5`)");
}

void check_foreign_queues(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                          Report& report) {
  const auto queues = io_queues_of(host, controller);
  if (!queues) return;
  const long cpus = host.cpus;
  const bool many = *queues > kManyQueues || (*queues > kUsualQueues && *queues > cpus);
  const bool few = *queues <= 1 && cpus > 1;
  if (!many && !few) return;
  report.note(kConnectionArea, who + " has " + in_words(*queues) + (many ? ", each a TCP connection" : ""),
              many ? "many hosts with as many each are a burden for a small target; 4 to 8 give full speed"
                   : "one TCP connection, and one CPU, carry all that is read; 4 to 8 give full speed",
              "connect with `io_queues: auto` (or `nvme connect --nr-io-queues=" +
                  std::to_string(nvmetcp::automatic_io_queues(host.cpus)) + "`)");
}

void check_controller(const Host& host, const nvmetcp::Controller& controller, Report& report) {
  const config::Config& config = host.settings();
  const std::string who = controller.name + " (" + printable(controller.subsystem) + ")";
  check_state(controller, who, report);
  const config::Volume* volume = volume_of(config, controller);
  const auto target = volume == nullptr ? config.targets.end() : config.targets.find(volume->nvme->target);
  if (target != config.targets.end()) {
    check_settings(host, controller, who, target->second, report);
    check_configured_queues(host, controller, who, target->second, report);
    return;
  }
  check_foreign_loss(host, controller, who, report);
  if (controller.is_discovery) return;  // it has no I/O, and no hurry
  check_foreign_keep_alive(host, controller, who, report);
  check_foreign_queues(host, controller, who, report);
}

}  // namespace

void check_connections(const Host& host, Report& report) {
  const auto controllers = nvmetcp::list_controllers(host.root);
  if (!controllers) {
    report.unknown.push_back("connections: " + controllers.error().what);
    return;
  }
  const std::size_t before = report.findings.size();
  std::size_t seen = 0;
  for (const nvmetcp::Controller& controller : *controllers) {
    if (controller.transport != "tcp") continue;
    ++seen;
    check_controller(host, controller, report);
  }
  if (seen > 0) {
    report.fine_since(before, std::to_string(seen) + (seen == 1 ? " connection" : " connections") +
                                  " (timeouts, keep-alive, queues)");
  }
}

}  // namespace spark::doctor
