#include "doctor/network/nics.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"

namespace spark::doctor {
namespace {

Bytes number_in(const std::filesystem::path& file) {
  const auto text = read_line_file(file);
  // A card without a link says -1, or can't be read.
  return text && !text->starts_with('-') ? std::strtoull(text->c_str(), nullptr, 10) : 0;
}

Nic read_nic(const std::filesystem::path& folder) {
  Nic nic;
  nic.name = folder.filename().native();
  // Tunnels do not report their state, only whether they have a carrier.
  const std::string state = read_line_file(folder / "operstate").value_or("");
  nic.is_up = state == "up" || (state == "unknown" && read_line_file(folder / "carrier").value_or("") != "0");
  std::error_code ignored;
  nic.is_wireless = std::filesystem::exists(folder / "wireless", ignored) ||
                    std::filesystem::exists(folder / "phy80211", ignored);
  nic.megabits = static_cast<unsigned>(number_in(folder / "speed"));
  nic.mtu = static_cast<unsigned>(number_in(folder / "mtu"));
  nic.received = number_in(folder / "statistics/rx_bytes");
  nic.sent = number_in(folder / "statistics/tx_bytes");
  return nic;
}

Result<json::array> ask_ip(const Host& host, std::vector<std::string> words) {
  words.insert(words.begin(), {"ip", "-json"});
  const auto output = host.run_tool(words);
  if (!output) return output.take_error();
  if (output->exit_status != 0) return fail(Errc::Unavailable, printable(trim(output->err)));
  const auto parsed = parse_json(output->out);
  if (!parsed || !parsed->is_array()) return fail(Errc::Failed, "`ip` did not answer with JSON");
  return parsed->get_array();
}

void add_networks(const Host& host, std::vector<Nic>& nics) {
  const auto answer = ask_ip(host, {"address", "show"});
  if (!answer) return;
  for (const json::value& link : *answer) {
    if (!link.is_object()) continue;
    const auto name = get_string(link.get_object(), "ifname");
    const auto nic =
        std::find_if(nics.begin(), nics.end(), [&](const Nic& n) { return name && n.name == *name; });
    const json::array* addresses = get_array(link.get_object(), "addr_info");
    if (nic == nics.end() || addresses == nullptr) continue;
    for (const json::value& address : *addresses) {
      if (!address.is_object()) continue;
      const auto local = get_string(address.get_object(), "local");
      const auto length = get_int(address.get_object(), "prefixlen");
      if (local && length) nic->networks.push_back(*local + "/" + std::to_string(*length));
    }
  }
}

// The address as bytes; its family's length, or 0 if it is none.
std::size_t to_bytes(const std::string& text, std::array<unsigned char, 16>& bytes) {
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return 4;
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return 16;
  return 0;
}

}  // namespace

std::vector<Nic> read_nics(const SystemRoot& root) {
  std::vector<Nic> nics;
  std::error_code error;
  std::filesystem::directory_iterator entry(root / "sys/class/net", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;
    if (entry->path().filename() != "lo" && std::filesystem::is_directory(entry->path(), gone)) {
      nics.push_back(read_nic(entry->path()));
    }
  }
  std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
  return nics;
}

std::vector<Nic> list_nics(const Host& host) {
  auto nics = read_nics(host.root);
  add_networks(host, nics);
  return nics;
}

const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name) {
  const auto at = std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) { return nic.name == name; });
  return at == nics.end() ? nullptr : &*at;
}

Result<Route> route_to(const Host& host, const std::string& address, const std::string& interface) {
  std::vector<std::string> words = {"route", "get", address};
  if (!interface.empty()) words.insert(words.end(), {"oif", interface});
  const auto answer = ask_ip(host, words);
  if (!answer) return answer.take_error();
  if (answer->empty() || !answer->front().is_object()) return fail(Errc::Unavailable, "no route");
  const json::object& route = answer->front().get_object();
  return Route{get_string(route, "dev").value_or(""), get_string(route, "gateway").value_or("")};
}

bool is_in_network(const std::string& address, const std::string& network) {
  const std::size_t slash = network.find('/');
  if (slash == std::string::npos) return false;
  std::array<unsigned char, 16> a{}, b{};
  const std::size_t length = to_bytes(address, a);
  if (length == 0 || to_bytes(network.substr(0, slash), b) != length) return false;
  const auto bits = static_cast<std::size_t>(std::atoi(network.c_str() + slash + 1));
  for (std::size_t bit = 0; bit < std::min(bits, length * 8); ++bit) {
    if (((a[bit / 8] ^ b[bit / 8]) & (0x80 >> (bit % 8))) != 0) return false;
  }
  return true;
}

std::string speed_of(const Nic& nic) {
  if (nic.megabits == 0) return "unknown speed";
  if (nic.megabits < 1000) return std::to_string(nic.megabits) + " Mb/s";
  const unsigned tenths = nic.megabits / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " Gb/s";
}

}  // namespace spark::doctor
