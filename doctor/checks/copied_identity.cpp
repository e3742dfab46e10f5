#include "doctor/checks/copied_identity.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.hpp"
#include "migration/survey/fabric_devices.hpp"
#include "nvmetcp/reservations/libnvme_reservations.hpp"

namespace spark::doctor {
namespace {

constexpr char kOneHost[] = "to a target, hosts with equal identities are one host: ";
constexpr char kCompare[] =
    "compare `cat /etc/nvme/hostnqn /etc/nvme/hostid /etc/machine-id` on every host: no two may be equal; if "
    "two are: ";
constexpr std::size_t kMostNamespaces = 16;  // that are asked, some milliseconds each

constexpr std::size_t kUuidLength = 36, kVersionAt = 14;

bool has_common_uuid(const nvmetcp::HostIdentity& identity, Report& report) {
  for (const char* uuid : nvmetcp::kCommonBoardUuids) {
    if (identity.id != uuid && !lower(identity.nqn).ends_with(uuid)) continue;
    report.wrong(kIdentityArea, "/etc/nvme has the UUID " + std::string(uuid) + ", which many boards have",
                 std::string(kOneHost) + "reservations and allow lists fail", kRenew);
    return true;
  }
  return false;
}

// Written before this machine got its own id at its first boot: it came with the image.
bool came_with_the_image(const SystemRoot& root) {
  std::error_code error;
  const auto machine = std::filesystem::last_write_time(root / "etc/machine-id", error);
  if (error) return false;
  const auto identity = std::filesystem::last_write_time(root / "etc/nvme/hostnqn", error);
  return !error && identity < machine;
}

// Made by software, of random numbers or of a name. A board's may be of any version, these too.
bool is_made_by_software(const std::string& uuid) {
  return std::string_view("34578").find(uuid[kVersionAt]) != std::string_view::npos;
}

// Firmware and its readers do not agree on the order of the bytes in the first three groups.
std::string swapped(const std::string& uuid) {
  std::string text = uuid;
  const auto swap = [&](std::size_t at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      text[at + 2 * i] = uuid[at + 2 * (bytes - 1 - i)];
      text[at + 2 * i + 1] = uuid[at + 2 * (bytes - 1 - i) + 1];
    }
  };
  swap(0, 4);
  swap(9, 2);
  swap(14, 2);
  return text;
}

// `nvme gen-hostnqn` takes the board's UUID. One that only a board can have, and this one does not.
void check_board(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  if (identity.nqn.size() < kUuidLength || identity.nqn.find(":uuid:") == std::string::npos) return;
  const std::string uuid = lower(identity.nqn.substr(identity.nqn.size() - kUuidLength));
  if (is_made_by_software(uuid)) return;
  const auto text = read_line_file(host.root / "sys/class/dmi/id/product_uuid");
  if (!text) {
    if (text.error().kind == Errc::Denied)
      report.unknown.push_back("whether the host NQN is of this board (needs root)");
    return;
  }
  const std::string board = lower(*text);
  const bool is_uuid = board.size() == kUuidLength && board.find_first_not_of("0-") != std::string::npos;
  if (!is_uuid || uuid == board || uuid == swapped(board)) return;
  report.note(
      kIdentityArea,
      "the UUID in /etc/nvme/hostnqn is of a kind that boards have, and this board's is another one (" +
          printable(board) + "): it may be another machine's",
      std::string(kOneHost) + "a reservation can't tell the two machines apart",
      std::string(kCompare) + kRenew);
}

// Registrants under this host's ID with a key that is not this host's.
void check_registrants(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  if (!host.is_root) return;  // devices can't be opened; other checks say so
  const nvmetcp::LocalRegistrant us = nvmetcp::local_registrant(identity, nvmetcp::read_machine(host.root));
  std::size_t asked = 0;
  for (const host::FabricDevice& device : host::list_fabric_devices(host.root)) {
    const bool is_live = std::ranges::any_of(device.paths, [](const auto& path) { return path.is_live(); });
    if (!is_live || ++asked > kMostNamespaces) continue;
    const auto answer = host.read_reservation("/dev/" + device.device, device.nsid);
    if (!answer && answer.error().kind == Errc::TimedOut) {
      report.unknown.push_back("the holders of reservations (" + device.device + ": " + answer.error().what +
                               ")");
      return;
    }
    if (!answer) continue;  // most targets offer none
    for (const nvmetcp::Registrant& other : answer->registrants) {
      const bool is_ours = other.key == us.key || other.key == us.former_key;
      if (other.host_id != us.host_id || is_ours) continue;
      report.wrong(kIdentityArea,
                   printable(device.subsystem) + ": another host or program has registered " +
                       (other.holds ? "for and holds its reservation" : "for its reservation") +
                       " with this host's own host ID " + identity.id,
                   std::string(kOneHost) +
                       "a reservation can't tell the two machines apart. It is another machine, another "
                       "program of this "
                       "host, or this host before its NQN, machine ID or board changed",
                   std::string(kCompare) + kRenew);
      return;
    }
  }
}

}  // namespace

void check_copies(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  check_registrants(host, identity, report);
  if (has_common_uuid(identity, report)) return;
  if (came_with_the_image(host.root)) {
    report.note(kIdentityArea,
                "/etc/nvme/hostnqn is older than /etc/machine-id: it may have come with a copied image, "
                "to other hosts as well",
                std::string(kOneHost) + "a reservation can't tell the two machines apart",
                std::string(kCompare) + kRenew);
  }
  check_board(host, identity, report);
}

Result<nvmetcp::ReservationReport> ask_reservation(const std::string& device, std::uint32_t nsid) {
  auto commands = nvmetcp::LibnvmeReservations::open(device, nsid);
  if (!commands) return commands.take_error();
  const auto report = commands->report();
  if (!report) return report.take_error();
  if (!*report) return fail(Errc::Unsupported, printable(device) + " offers no reservations");
  return **report;
}

}  // namespace spark::doctor
