#include "nvmetcp/validate.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::seconds;

constexpr std::size_t kLongestNqn = 223;       // bytes, NVMe base specification
constexpr std::size_t kLongestInterface = 15;  // IFNAMSIZ - 1
constexpr std::size_t kLongestAddress = 255;
constexpr seconds kLongestTimer{24 * 3600};
constexpr unsigned kMostIoQueues = 1024;

std::string text(seconds duration) {
  return std::to_string(duration.count()) + "s";
}

// The kernel splits its option string at commas and line ends, and reads the rest as another option.
bool fits_option_string(std::string_view word) {
  return std::none_of(word.begin(), word.end(),
                      [](unsigned char c) { return c <= ' ' || c == ',' || c == 0x7F; });
}

Result<> validate_range(const char* key, seconds value, seconds least) {
  if (value >= least && value <= kLongestTimer) return {};
  return fail(Errc::Invalid, std::string(key) + " " + text(value) + " is out of range",
              "give " + text(least) + " to " + text(kLongestTimer));
}

Result<> validate_interface(const std::string& interface) {
  if (interface.size() <= kLongestInterface && fits_option_string(interface) &&
      interface.find('/') == std::string::npos) {
    return {};
  }
  return fail(Errc::Invalid,
              "interface " + printable(interface) + " can't be the name of a network interface",
              "`ip -brief link` lists their names");
}

Result<> validate_controller_loss(seconds loss, seconds delay) {
  if (auto in_range = validate_range("controller_loss", loss, seconds(0)); !in_range) return in_range;
  if (loss.count() == 0 || loss >= delay) return {};
  return fail(Errc::Invalid,
              "controller_loss " + text(loss) + " is shorter than reconnect_delay " + text(delay) +
                  ": the kernel would give up before its first attempt",
              "make controller_loss longer, or `never`");
}

Result<> validate_fast_fail(seconds fast, const ConnectOptions& options) {
  if (auto in_range = validate_range("fast_fail", fast, seconds(1)); !in_range) return in_range;
  if (fast < options.reconnect_delay) {
    return fail(Errc::Invalid,
                "fast_fail " + text(fast) + " is shorter than reconnect_delay " +
                    text(options.reconnect_delay) + ": I/O would fail before the first attempt to reconnect",
                "make fast_fail at least reconnect_delay, or `off`");
  }
  if (options.controller_loss && fast > *options.controller_loss) {
    return fail(Errc::Invalid,
                "fast_fail " + text(fast) + " is longer than controller_loss " +
                    text(*options.controller_loss) + ": the device would be gone before",
                "make fast_fail at most controller_loss, or `off`");
  }
  return {};
}

}  // namespace

Result<> validate(const ConnectOptions& options) {
  if (auto valid = validate_interface(options.interface); !valid) return valid;
  if (options.io_queues > kMostIoQueues) {
    return fail(Errc::Invalid, "io_queues " + std::to_string(options.io_queues) + " is out of range",
                "give 1 to " + std::to_string(kMostIoQueues) + ", or `auto`; 4 to 8 are enough");
  }
  if (auto valid = validate_range("keep_alive", options.keep_alive, seconds(1)); !valid) return valid;
  if (auto valid = validate_range("reconnect_delay", options.reconnect_delay, seconds(1)); !valid)
    return valid;
  if (options.controller_loss) {
    auto valid = validate_controller_loss(*options.controller_loss, options.reconnect_delay);
    if (!valid) return valid;
  }
  constexpr std::array kPolicies = {"", "numa", "round-robin", "queue-depth"};
  if (std::ranges::find(kPolicies, options.io_policy) == kPolicies.end()) {
    return fail(Errc::Invalid, "io_policy " + printable(options.io_policy) + " is none that the kernel has",
                "give numa, round-robin or queue-depth");
  }
  if (options.fast_fail) return validate_fast_fail(*options.fast_fail, options);
  return {};
}

Result<> validate(const Portal& portal) {
  if (portal.port == 0) {
    return fail(Errc::Invalid, "port 0 of " + printable(portal.address) + " can't be connected to",
                "NVMe/TCP listens on 4420 unless told otherwise");
  }
  if (!portal.address.empty() && portal.address.size() <= kLongestAddress &&
      fits_option_string(portal.address) && portal.address.find('/') == std::string::npos) {
    return {};
  }
  return fail(Errc::Invalid, "address \"" + printable(portal.address) + "\" is no IP address or host name");
}

Result<> validate_nqn(const std::string& nqn, const std::string& role) {
  if (nqn.empty()) return fail(Errc::Invalid, "the " + role + " is empty");
  if (nqn.size() > kLongestNqn) {
    return fail(Errc::Invalid, role + " " + printable(nqn) + " has " + std::to_string(nqn.size()) +
                                   " bytes; an NQN has at most " + std::to_string(kLongestNqn));
  }
  if (fits_option_string(nqn)) return {};
  return fail(Errc::Invalid,
              role + " \"" + printable(nqn) + "\" holds a comma, white space or a control character",
              "an NQN reads like nqn.2026-01.io.example:name, or a bare name");
}

unsigned automatic_io_queues(unsigned online_cpus) {
  return std::clamp(online_cpus, 1U, 8U);
}

}  // namespace spark::nvmetcp
