#include "nvmetcp/connect/connect_errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::nvmetcp {
namespace {

constexpr const char* kTryAgain = "it is worth another attempt";

std::optional<std::string> line_with(const std::vector<std::string>& lines, std::string_view words) {
  const auto found = std::find_if(lines.rbegin(), lines.rend(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
  if (found == lines.rend()) return std::nullopt;
  return *found;
}

Error not_allowed(const std::string& doing, const ConnectAttempt& attempt) {
  return {Errc::Denied, doing + ": the target does not allow this host",
          "add host NQN " + printable(attempt.host_nqn) + " to the allow list of the target" +
              (attempt.discovery ? "" : "'s subsystem " + printable(attempt.subsystem))};
}

Error not_offered(const std::string& doing, const ConnectAttempt& attempt) {
  if (attempt.discovery) {
    return {Errc::Unsupported, doing + ": the target has no discovery service at this port",
            "volumes with a known subsystem can be connected without one"};
  }
  return {Errc::NotFound, doing + ": the target has no such subsystem at this portal",
          "`spark-stage discover ADDRESS` lists the subsystems that it offers to this host"};
}

// The two sides' keys differ. Only an administrator can fix this, so there is no immediate retry.
Error wrong_key(const std::string& doing, const std::vector<std::string>& log,
                const ConnectAttempt& attempt) {
  if (line_with(log, "controller authentication failed") ||
      line_with(log, "controller did not authenticate")) {
    return {Errc::Refused,
            doing + ": the target did not prove that it has the key in " +
                printable(attempt.options.controller_key_file),
            "put its key into that file; if they are the same, another machine answers at that address"};
  }
  return {Errc::Refused,
          doing + ": the target rejected the key in " + printable(attempt.options.host_key_file),
          "put the key that the target has for host NQN " + printable(attempt.host_nqn) + " into that file"};
}

// The handshake is another program's work; the kernel tells how far it came. Both the target's lack of TLS
// and its having another key end it in the same way.
std::optional<Error> tls_failed(int number, const std::string& doing, const std::vector<std::string>& log,
                                const ConnectAttempt& attempt) {
  if (attempt.options.tls_psk_file.empty()) return std::nullopt;
  if (number == ESRCH) {
    return Error{Errc::Refused, doing + ": no program on this host performs TLS handshakes",
                 "install the package ktls-utils, then `sudo systemctl enable --now tlshd`"};
  }
  if (line_with(log, "no valid PSK found")) {
    return Error{
        Errc::Refused,
        doing + ": the key in " + printable(attempt.options.tls_psk_file) + " is not in the kernel's keyring",
        kTryAgain};
  }
  if (!line_with(log, "TLS handshake")) return std::nullopt;
  const bool is_key = number == EACCES || number == EKEYREJECTED || number == ENOKEY;
  return Error{is_key ? Errc::Refused : Errc::Unavailable,
               doing + ": the TLS handshake failed: the target has no TLS at this port, or not the key in " +
                   printable(attempt.options.tls_psk_file),
               "give the target that key for host NQN " + printable(attempt.host_nqn) +
                   ", and check that tlshd runs there"};
}

Error authentication_failed(const std::string& doing, const std::vector<std::string>& log,
                            const ConnectAttempt& attempt) {
  if (!attempt.options.host_key_file.empty()) return wrong_key(doing, log, attempt);
  return {Errc::Denied, doing + ": the target asks for authentication",
          "give its keys under `auth` in the config, or switch it off for this host on the target"};
}

// The kernel turns every refusal by the target into EIO and logs the reason.
Error refused_by_target(const std::string& doing, const std::vector<std::string>& log,
                        const ConnectAttempt& attempt) {
  // Other controllers log the same messages while they reconnect: the NQN identifies the controller.
  if (line_with(log, "Connect for subsystem " + attempt.subsystem + " is not allowed")) {
    return not_allowed(doing, attempt);
  }
  if (line_with(log, "Connect Invalid Data Parameter, subsysnqn \"" + attempt.subsystem + "\"")) {
    return not_offered(doing, attempt);
  }
  for (const char* words :
       {"authentication required", "authentication setup failed", "authentication failed"}) {
    if (line_with(log, words)) return authentication_failed(doing, log, attempt);
  }
  if (line_with(log, "controller is busy or not available")) {
    return {Errc::Unavailable, doing + ": the target has no controller free", kTryAgain};
  }
  if (attempt.discovery) {
    return {Errc::Unsupported, doing + ": the target refused a discovery controller",
            "volumes with a known subsystem can be connected without one"};
  }
  return {Errc::Denied, doing + ": the target refused the connection",
          "either host NQN " + printable(attempt.host_nqn) + " is not on its allow list or subsystem " +
              printable(attempt.subsystem) +
              " is not there; `dmesg` says which, `spark-stage discover ADDRESS` lists its subsystems"};
}

Error invalid(const std::string& doing, const std::vector<std::string>& log) {
  if (const auto line = line_with(log, "Invalid MNAN value")) {
    return {Errc::Unsupported,
            doing + ": the target reports an impossible number of namespaces (" + *line + ")",
            "this is a fault of the target's NVMe code (known of RouterOS): update the target"};
  }
  if (line_with(log, "but different host") || line_with(log, "found same host")) {
    return {Errc::Invalid,
            doing +
                ": another connection of this host uses the same host NQN with another host id, or the "
                "other way round",
            "the kernel accepts one host id for a host NQN: `grep . /sys/class/nvme/*/host{nqn,id}` shows "
            "both"};
  }
  if (is_number_taken(log)) {
    return {Errc::Unavailable,
            doing + ": the target gave it the number of a connection that this host still tries to restore",
            kTryAgain};
  }
  return {Errc::Invalid, doing + ": the kernel refused the options of the connection",
          "`dmesg | grep nvme` names the option that it refused"};
}

Error by_number(int number, const std::string& doing, const std::vector<std::string>& log,
                const ConnectAttempt& attempt) {
  switch (number) {
    case EIO:
      return refused_by_target(doing, log, attempt);
    case EINVAL:
      return invalid(doing, log);
    case EACCES:
    case EPERM:
      return {Errc::Denied, doing + ": " + std::strerror(number), "only root may connect"};
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
      return explain_unreachable(number, attempt.portal, attempt.options.interface);
    case ETIMEDOUT:
      return {Errc::Unavailable,
              doing + ": a program accepts TCP there but does not answer as NVMe/TCP in time",
              "check the port, and that large packets pass (one MTU on the whole way)"};
    case ECONNRESET:
    case EPIPE:
    case EPROTO:
      return {Errc::Unavailable, doing + ": the other side closed the connection",
              "check that NVMe/TCP listens on this port, and whether it asks for TLS there"};
    case EALREADY:
      return {Errc::Unavailable, doing + ": an earlier connection to it is still being set up or removed",
              kTryAgain};
    case EADDRINUSE:
      return {Errc::Invalid, doing + ": the host NQN is in use with another host id",
              "check /etc/nvme/hostid"};
    case EXDEV:
      return {Errc::Failed, doing + ": a queue's CPU is offline",
              "give fewer io_queues, or bring the CPUs online"};
    case ENODEV:
      return {Errc::Invalid,
              doing + ": network interface " + printable(attempt.options.interface) + " does not exist",
              "`ip -brief link` lists the names"};
    case ENOKEY:
    case EKEYREJECTED:
      return authentication_failed(doing, log, attempt);
    case EOPNOTSUPP:
      return {Errc::Unsupported, doing + ": this kernel or target can't",
              "`dmesg | grep nvme` has the reason"};
    default:
      return {Errc::Unavailable, doing + ": " + std::strerror(number), kTryAgain};
  }
}

}  // namespace

bool is_number_taken(const std::vector<std::string>& kernel_log) {
  return line_with(kernel_log, "Duplicate cntlid").has_value();
}

Error explain_connect(int number, const std::vector<std::string>& kernel_log, const ConnectAttempt& attempt) {
  const std::string doing =
      attempt.discovery ? "asking " + attempt.portal + " for its discovery log"
                        : "connecting subsystem " + printable(attempt.subsystem) + " at " + attempt.portal;
  auto tls = tls_failed(number, doing, kernel_log, attempt);
  return tls ? std::move(*tls) : by_number(number, doing, kernel_log, attempt);
}

}  // namespace spark::nvmetcp
