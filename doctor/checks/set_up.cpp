// The configuration, and the daemon that should follow it.
#include "base/text.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {
namespace {

// Its socket is in the kernel's list of those that listen.
bool daemon_listens(const Host& host) {
  const auto sockets = read_file(host.root / "proc/net/unix");
  if (!sockets) return true;  // not to be told: nothing is claimed
  for (const std::string& line : split(*sockets, '\n')) {
    if (trim(line).ends_with(" " + host.socket)) return true;
  }
  return false;
}

bool needs_daemon(const config::Config& config) {
  return !config.volumes.empty() || !config.datasets.empty() || !config.outputs.empty() ||
         !config.fleet.listen.empty();
}

// One that listens and does not answer would otherwise pass for one with nothing to report.
void check_daemon(const Host& host, Report& report) {
  const auto status = host.ask_daemon();
  if (status) return;  // also from a network namespace that the kernel's list is not of
  if (!daemon_listens(host)) {
    if (!needs_daemon(host.settings())) return;
    report.wrong("daemon", "spark-staged does not run, nothing listens at " + printable(host.socket),
                 host.settings().volumes.empty() ? "nothing is staged or sent"
                                                 : "volumes are neither brought up nor kept up",
                 "sudo systemctl enable --now spark-staged");
    return;
  }
  if (status.error().kind == Errc::Denied) {
    report.unknown.push_back("what the daemon reports (" + status.error().message() + ")");
    return;
  }
  report.wrong("daemon", "spark-staged runs and does not answer: " + status.error().what,
               "what it would report is missing here; systemd restarts it if it hangs for 30 s",
               "journalctl -u spark-staged; then: sudo systemctl restart spark-staged");
}

}  // namespace

void check_set_up(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  if (!host.config && host.config.error().kind == Errc::NotFound) {
    report.note("config", "there is no configuration yet",
                "nothing is kept connected and mounted; the other checks use the setup found on this host",
                "sudo spark-stage import --output /etc/spark-stage/spark-stage.yaml");
    return;
  }
  if (!host.config) {
    // One mistake a line.
    report.wrong("config", join(split(host.config.error().what, '\n'), "; "),
                 "the daemon does not start with it", "spark-stage config check");
    return;
  }
  check_daemon(host, report);
  report.fine_since(before, "configuration and daemon");
}

}  // namespace spark::doctor
