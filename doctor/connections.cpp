// The controllers that are connected now, against the configuration.
#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "doctor/doctor.hpp"
#include "nvmetcp/sysfs.hpp"
#include "nvmetcp/timers.hpp"

namespace spark::doctor {
namespace {

constexpr char kConnectionArea[] = "connection";
constexpr long kManyQueues = 17;  // 16 for I/O, and the one for administration

const config::Volume* volume_of(const config::Config& config, const nvmetcp::Controller& controller) {
  const auto at =
      std::find_if(config.volumes.begin(), config.volumes.end(), [&](const config::Volume& volume) {
        return volume.nvme && volume.nvme->subsystem == controller.subsystem;
      });
  return at == config.volumes.end() ? nullptr : &*at;
}

void check_state(const nvmetcp::Controller& controller, const std::string& who, Report& report) {
  if (controller.is_live()) return;
  report.wrong(kConnectionArea, who + " is '" + printable(controller.state) + "', not live",
               "reads of its volume wait or fail",
               "sudo dmesg | grep " + controller.name + "; spark-stage status");
}

void check_settings(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                    const config::Target& target, Report& report) {
  const auto differences = nvmetcp::differences(host.root, controller, config::connect_options(target));
  if (differences.empty()) return;
  report.note(kConnectionArea, who + ": " + printable(join(differences, "; ")),
              "it was connected before with these; the volume does not behave as configured",
              "with its jobs stopped: sudo spark-stage volumes down NAME, then up NAME");
}

// Somebody else's connection over TCP: the kernel's default gives it up after ten minutes.
void check_foreign(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                   Report& report) {
  const auto loss = read_line_file(host.root / "sys/class/nvme" / controller.name / "ctrl_loss_tmo");
  if (!loss || std::atol(loss->c_str()) <= 0) return;
  report.note(kConnectionArea, who + " is given up " + printable(*loss) + " s after its target went away",
              "the device is taken away under its mount then, and does not come back by itself",
              "spark-stage import: let the daemon keep it; or: echo -1 | sudo tee /sys/class/nvme/" +
                  controller.name + "/ctrl_loss_tmo");
}

void check_queues(const Host& host, const nvmetcp::Controller& controller, const std::string& who,
                  Report& report) {
  const auto count = read_line_file(host.root / "sys/class/nvme" / controller.name / "queue_count");
  if (!count || std::atol(count->c_str()) <= kManyQueues) return;
  report.note(kConnectionArea, who + " has " + printable(*count) + " queues, each a TCP connection",
              "many hosts with as many each are a burden for a small target; 4 to 8 give full speed",
              "connect with `io_queues: auto` (or `nvme connect --nr-io-queues=8`)");
}

}  // namespace

void check_connections(const Host& host, Report& report) {
  const auto controllers = nvmetcp::list_controllers(host.root);
  if (!controllers) {
    report.unknown.push_back("connections: " + controllers.error().what);
    return;
  }
  const config::Config& config = host.settings();
  const std::size_t before = report.findings.size();
  std::size_t seen = 0;
  for (const nvmetcp::Controller& controller : *controllers) {
    if (controller.transport != "tcp") continue;
    ++seen;
    const std::string who = controller.name + " (" + printable(controller.subsystem) + ")";
    check_state(controller, who, report);
    check_queues(host, controller, who, report);
    const config::Volume* volume = volume_of(config, controller);
    const auto target = volume == nullptr ? config.targets.end() : config.targets.find(volume->nvme->target);
    if (target != config.targets.end()) {
      check_settings(host, controller, who, target->second, report);
    } else {
      check_foreign(host, controller, who, report);
    }
  }
  if (seen > 0) report.fine_since(before, std::to_string(seen) + " connections");
}

}  // namespace spark::doctor
