// The kernel's NVMe/TCP driver and its options, and libnvme.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/connect/fabrics_device.hpp"

namespace spark::doctor {
namespace {

constexpr char kKernelArea[] = "kernel";

bool is_there(const Host& host, const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(host.root / path, ignored);
}

// In the kernel itself, or a module that modprobe finds.
bool is_available(const Host& host) {
  const std::string folder = "lib/modules/" + host.kernel + "/";
  for (const char* list : {"modules.dep", "modules.builtin"}) {
    const auto text = read_file(host.root / (folder + list), 64 << 20);
    if (text && text->find("/nvme-tcp.ko") != std::string::npos) return true;
  }
  return false;
}

void check_driver(const Host& host, Report& report) {
  if (is_there(host, "sys/module/nvme_tcp")) return;
  if (!is_available(host)) {
    report.wrong(kKernelArea, "kernel " + printable(host.kernel) + " has no NVMe/TCP driver (nvme-tcp)",
                 "nothing can be connected over TCP", nvmetcp::how_to_get_driver(host.root, host.kernel));
  } else if (!is_there(host, "dev/nvme-fabrics") && !host.settings().volumes.empty()) {
    report.note(kKernelArea, "the NVMe/TCP driver is not loaded",
                "the daemon loads it with the first volume; at boot the package's modules-load.d does",
                "sudo modprobe nvme-tcp");
  }
}

// The device waits for a lock that a connect holds, so it is asked in a process of its own.
void check_options(const Host& host, Report& report) {
  if (!is_there(host, "dev/nvme-fabrics") || host.settings().targets.empty()) return;
  if (!host.is_root) {
    report.unknown.push_back("which options the kernel knows (needs root)");
    return;
  }
  for (const auto& [name, target] : host.settings().targets) {
    const auto asked =
        nvmetcp::io_controller_options("x", target.portals.front(), {"x", "x"}, target.options, host.cpus);
    const auto answer = host.bounded([&]() -> Result<json::object> {
      if (auto known = nvmetcp::check_supported(host.root, asked); !known) return known.take_error();
      return json::object();
    });
    if (answer) continue;
    if (answer.error().kind == Errc::TimedOut) {
      report.unknown.push_back("which options the kernel knows (a connect is under way)");
      return;
    }
    report.wrong(kKernelArea, "target " + printable(name) + ": " + answer.error().what,
                 "its volumes are refused rather than connected without it",
                 answer.error().hint.empty() ? "spark-stage config show" : answer.error().hint);
  }
}

// {1, 13} of "1.13-2". None of "(none)".
std::optional<std::pair<int, int>> minor_version(std::string_view version) {
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<int>(version.substr(0, dot));
  const auto second = leading_number<int>(version.substr(dot + 1));
  return first && second ? std::optional(std::pair(*first, *second)) : std::nullopt;
}

// An upgrade of the distribution brings another libnvme, which the package's dependency excludes: apt then
// removes the package. Debian 13 and Ubuntu 24.04 call it libnvme1t64: an upgrade may change the name too.
void check_next_libnvme(const Host& host, Report& report) {
  // apt translates its words.
  const auto answer = host.run_tool({"env", "LC_ALL=C", "apt-cache", "policy", "libnvme1", "libnvme1t64"});
  if (!answer || answer->exit_status != 0) return;
  std::optional<std::pair<int, int>> installed, next;
  for (const std::string& line : split(answer->out, '\n')) {
    const std::string_view words = trim(line);
    for (const std::string_view label : {"Installed:", "Candidate:"}) {
      if (!words.starts_with(label)) continue;
      auto& known = label == "Installed:" ? installed : next;
      known = std::max(known, minor_version(trim(words.substr(label.size()))));
    }
  }
  if (!installed || !next || *next <= *installed) return;
  const auto shown = [](const std::pair<int, int>& version) {
    return std::to_string(version.first) + "." + std::to_string(version.second);
  };
  report.note(
      "libnvme",
      "the next upgrade of this system brings libnvme " + shown(*next) + " instead of " + shown(*installed),
      "apt removes the package spark-stage with it, and a build of one's own refuses to connect; "
      "mounts stay, nothing keeps them healthy",
      "have the package of the new release ready, and install it right after the upgrade: "
      "docs/install.md");
}

}  // namespace

void check_kernel(const Host& host, Report& report) {
  std::size_t before = report.findings.size();
  check_driver(host, report);
  check_options(host, report);
  report.fine_since(before, "kernel " + printable(host.kernel));
  before = report.findings.size();
  if (!host.libnvme) {
    report.wrong("libnvme", host.libnvme.error().what,
                 "its structures differ from version to version, so nothing is connected",
                 host.libnvme.error().hint);
  }
  check_next_libnvme(host, report);
  report.fine_since(before, "libnvme");
}

}  // namespace spark::doctor
