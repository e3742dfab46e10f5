#include "doctor/network/mtu.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace spark::doctor {
namespace {

constexpr unsigned kSmall = 100;

// The packet without the headers of IP and ICMP.
std::string payload(const std::string& address, unsigned packet) {
  const unsigned headers = address.find(':') == std::string::npos ? 28 : 48;
  return std::to_string(packet > headers ? packet - headers : 0);
}

// ping's exit status: 0 something came back, 1 nothing did, 2 it could not be sent.
Result<bool> comes_back(const Host& host, const std::string& address, const std::string& interface,
                        unsigned packet) {
  std::vector<std::string> words = split("ping -n -q -M do -i 0.2 -W 1", ' ');
  words.insert(words.end(), {"-c", std::to_string(kProbePackets), "-s", payload(address, packet)});
  if (!interface.empty()) words.insert(words.end(), {"-I", interface});
  words.push_back(address);
  const auto output = host.run_tool(words);
  if (!output) return output.take_error();
  return output->exit_status == 0;
}

}  // namespace

Result<PathSize> probe_path(const Host& host, const std::string& address, const std::string& interface,
                            unsigned packet) {
  PathSize size;
  const auto small = comes_back(host, address, interface, kSmall);
  if (!small) return small.take_error();
  size.answers = *small;
  if (!size.answers) return size;
  // The usual sizes below the wanted one: no more are worth the time.
  const std::set<unsigned, std::greater<>> sizes = {packet, 9000, 4096, 1500, 1400, 1280};
  for (const unsigned candidate : sizes) {
    if (candidate > packet) continue;
    if (comes_back(host, address, interface, candidate).value_or(false)) {
      size.works = candidate;
      break;
    }
  }
  return size;
}

}  // namespace spark::doctor
