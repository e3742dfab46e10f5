// The targets' keys, and the TLS handshake service.
#include "nvmetcp/security/keys.hpp"
#include "base/text.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/security/tls.hpp"

namespace spark::doctor {
namespace {

constexpr char kKeysArea[] = "keys";
constexpr char kRefused[] = "its volumes are refused";

Result<> read_all(const nvmetcp::ConnectOptions& options) {
  if (const auto keys = nvmetcp::read_keys(options); !keys) return keys.take_error();
  if (options.tls_psk_file.empty()) return {};
  const auto key = nvmetcp::read_tls_key(options);
  if (!key) return key.take_error();
  return {};
}

void check_handshakes(const Host& host, Report& report) {
  const auto answer = host.run_tool({"systemctl", "is-active", "--quiet", "tlshd.service"});
  if (!answer) {
    report.unknown.push_back("whether tlshd runs (" + answer.error().what + ")");
  } else if (answer->exit_status != 0) {
    report.wrong(kKeysArea, "tlshd does not run: no program on this host performs TLS handshakes",
                 "volumes of targets with `tls` are refused",
                 "sudo apt install ktls-utils && sudo systemctl enable --now tlshd");
  }
}

}  // namespace

void check_keys(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  bool has_keys = false, has_tls = false;
  for (const auto& [name, target] : host.settings().targets) {
    const nvmetcp::ConnectOptions& options = target.options;
    if (options.host_key_file.empty() && options.tls_psk_file.empty()) continue;
    has_keys = true;
    has_tls |= !options.tls_psk_file.empty();
    if (!host.is_root) {
      report.unknown.push_back("the keys of target " + printable(name) + " (needs root)");
    } else if (const auto readable = read_all(options); !readable) {
      report.wrong(kKeysArea, "target " + printable(name) + ": " + readable.error().what, kRefused,
                   readable.error().hint);
    }
  }
  if (has_tls) check_handshakes(host, report);
  if (has_keys && host.is_root) report.fine_since(before, "keys");
}

}  // namespace spark::doctor
