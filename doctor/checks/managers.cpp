// Other programs on this host that connect, disconnect or claim NVMe devices by themselves.
#include <filesystem>

#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "migration/survey/survey.hpp"
#include "nvmetcp/discovery/autoconnect.hpp"

namespace spark::doctor {
namespace {

constexpr char kManagersArea[] = "managers";

bool is_placed(const Host& host, const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(host.root / path, ignored));
}

bool runs(const Host& host, const std::string& unit) {
  const auto processes = read_line_file(host.root / ("sys/fs/cgroup/system.slice/" + unit + "/cgroup.procs"));
  return processes && !processes->empty();
}

bool is_enabled(const Host& host, const std::string& unit) {
  for (const char* target :
       {"default.target", "multi-user.target", "sysinit.target", "remote-fs-pre.target"}) {
    if (is_placed(host, "etc/systemd/system/" + std::string(target) + ".wants/" + unit)) return true;
  }
  return false;
}

void check_autoconnect(const Host& host, Report& report) {
  constexpr char kUnit[] = "nvmf-autoconnect.service";
  const host::Survey survey = host::survey(host.root);
  if (!is_enabled(host, kUnit) || (survey.discovery_conf.empty() && survey.config_json.empty())) return;
  report.note(
      kManagersArea,
      std::string(kUnit) + " connects at boot the subsystems of /etc/nvme/discovery.conf or config.json",
      "its connections have its own timeouts; the daemon adopts them unchanged",
      "spark-stage import takes the lists over; then: sudo systemctl disable " + std::string(kUnit));
}

void check_autoconnect_rule(const Host& host, Report& report) {
  const std::string rule = nvmetcp::autoconnect_rule(host.root);
  if (rule.empty()) return;
  report.note(
      kManagersArea, rule + " connects everything that a target offers as soon as that changes",
      "so spark-stage does not listen for changes, and asks every ten minutes; see docs/neighbours.md",
      "sudo ln -s /dev/null /etc/udev/rules.d/70-nvmf-autoconnect.rules && "
      "sudo udevadm control --reload && sudo systemctl restart spark-staged");
}

// Of nvme-stas before 3; man stacd.conf.
bool disconnects_others(const Host& host) {
  const auto text = read_file(host.root / "etc/stas/stacd.conf");
  if (!text) return false;
  for (const std::string& line : split(*text, '\n')) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || trim(line.substr(0, equals)) != "disconnect-scope") continue;
    if (trim(line.substr(equals + 1)) == "all-connections-matching-disconnect-trtypes") return true;
  }
  return false;
}

void check_stas(const Host& host, Report& report) {
  if ((runs(host, "stacd.service") || is_enabled(host, "stacd.service")) && disconnects_others(host)) {
    report.wrong(kManagersArea,
                 "stacd disconnects every NVMe/TCP connection that is not in its own configuration",
                 "volumes that spark-stage connects are taken away again, over and over",
                 "set disconnect-scope=only-stas-connections in /etc/stas/stacd.conf, then: sudo systemctl "
                 "reload stacd");
    return;
  }
  for (const char* unit : {"stacd.service", "stafd.service"}) {
    if (!runs(host, unit) && !is_enabled(host, unit)) continue;
    report.note(
        kManagersArea, std::string(unit) + " (nvme-stas) manages NVMe connections on this host",
        "it shares the volumes' connections, and ends those that its list of subsystems loses",
        "exclude this host's volumes in /etc/stas/stacd.conf, or: sudo systemctl disable --now stacd stafd");
    return;
  }
}

// With the kernel's own multipath, device mapper's has nothing to claim.
void check_multipathd(const Host& host, Report& report) {
  const auto native = read_line_file(host.root / "sys/module/nvme_core/parameters/multipath");
  if (!runs(host, "multipathd.service") || !native || *native != "N") return;
  report.wrong(
      kManagersArea, "multipathd runs, and the kernel's own NVMe multipath is off",
      "it may claim a volume's device, which can't be mounted then",
      "sudo mkdir -p /etc/multipath/conf.d && printf 'blacklist {\\n  devnode \"^nvme\"\\n}\\n' | sudo tee "
      "/etc/multipath/conf.d/spark-stage.conf && sudo systemctl restart multipathd");
}

}  // namespace

void check_managers(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  check_autoconnect(host, report);
  check_autoconnect_rule(host, report);
  check_stas(host, report);
  check_multipathd(host, report);
  report.fine_since(before, "no other manager");
}

}  // namespace spark::doctor
