#include "base/network/nics.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/folder.hpp"

namespace spark {
namespace {

std::string text_in(const std::filesystem::path& file) {
  return read_line_file(file).value_or("");
}

Bytes number_in(const std::filesystem::path& file) {
  const std::string text = text_in(file);
  // A card without a link says -1, or can't be read.
  return text.starts_with('-') ? 0 : std::strtoull(text.c_str(), nullptr, 10);
}

// Of "32.0 GT/s PCIe" and 4 lanes, without the headers of PCIe's packets.
unsigned pcie_rate(const std::filesystem::path& device) {
  const double transfers = std::strtod(text_in(device / "current_link_speed").c_str(), nullptr);
  const double encoded = transfers < 8 ? 0.8 : 128.0 / 130;
  return static_cast<unsigned>(transfers * 1000 * encoded *
                               static_cast<double>(number_in(device / "current_link_width")));
}

void read_port(const std::filesystem::path& folder, Nic& nic) {
  std::error_code none;
  nic.pci = std::filesystem::read_symlink(folder / "device", none).filename().native();
  const std::string port = text_in(folder / "phys_port_name");
  const std::string model = text_in(folder / "device/vendor") + text_in(folder / "device/device");
  if (!port.empty() && !model.empty()) nic.port = model + " " + port;
}

// RDMA, which the counters of the network card lack. Other drivers than this one may count all traffic there.
Bytes rdma_bytes(const std::filesystem::path& device, const char* counter) {
  constexpr Bytes kWord = 4;  // bytes
  std::error_code error, none;
  if (std::filesystem::read_symlink(device / "driver", none).filename() != "mlx5_core") return 0;
  std::filesystem::directory_iterator entry(device / "infiniband", error);
  if (error || entry == std::filesystem::directory_iterator()) return 0;
  return number_in(entry->path() / "ports/1/counters" / counter) * kWord;
}

Nic read_nic(const std::filesystem::path& folder) {
  Nic nic;
  nic.name = folder.filename().native();
  // Tunnels do not report their state, only whether they have a carrier.
  const std::string state = text_in(folder / "operstate");
  nic.is_up = state == "up" || (state == "unknown" && text_in(folder / "carrier") != "0");
  std::error_code ignored;
  nic.is_wireless = std::filesystem::exists(folder / "wireless", ignored) ||
                    std::filesystem::exists(folder / "phy80211", ignored);
  nic.megabits = static_cast<unsigned>(number_in(folder / "speed"));
  nic.pcie_megabits = pcie_rate(folder / "device");
  nic.mtu = static_cast<unsigned>(number_in(folder / "mtu"));
  nic.received = number_in(folder / "statistics/rx_bytes") + rdma_bytes(folder / "device", "port_rcv_data");
  nic.sent = number_in(folder / "statistics/tx_bytes") + rdma_bytes(folder / "device", "port_xmit_data");
  read_port(folder, nic);
  return nic;
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
  for (const auto& entry : FolderEntries(root / "sys/class/net")) {
    std::error_code gone;
    if (entry.path().filename() != "lo" && std::filesystem::is_directory(entry.path(), gone)) {
      nics.push_back(read_nic(entry.path()));
    }
  }
  std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
  return nics;
}

const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name) {
  const auto at = std::find_if(nics.begin(), nics.end(), [&](const Nic& nic) { return nic.name == name; });
  return at == nics.end() ? nullptr : &*at;
}

const Nic* other_half(const std::vector<Nic>& nics, const Nic& nic) {
  // A port that one card serves alone has the lanes for its speed.
  if (nic.port.empty() || nic.pcie_megabits == 0 || nic.pcie_megabits >= nic.megabits) return nullptr;
  const auto at = std::ranges::find_if(
      nics, [&](const Nic& other) { return other.port == nic.port && other.pci != nic.pci; });
  return at == nics.end() ? nullptr : &*at;
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

std::string format_bits(double bits_per_second) {
  const double megabits = bits_per_second / 1e6;
  const bool is_giga = megabits >= 999.5;
  const double value = is_giga ? megabits / 1000 : megabits;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value);
  std::string digits = text;
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
  }
  return digits + (is_giga ? " Gb/s" : " Mb/s");
}

std::string speed_of(const Nic& nic) {
  return nic.megabits == 0 ? "unknown speed" : format_bits(nic.megabits * 1e6);
}

}  // namespace spark
