#include "nvmetcp/reservations/reservation.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/text.hpp"
#include "nvmetcp/host_identity.hpp"

namespace spark::nvmetcp {
namespace {

// Offsets in the extended data structure, little endian (NVMe Base, Reservation Report).
constexpr std::size_t kHeaderBytes = 64, kEntryBytes = 64;
constexpr std::size_t kGenerationAt = 0, kTypeAt = 4, kCountAt = 5;                  // in the header
constexpr std::size_t kStatusAt = 2, kKeyAt = 8, kHostIdAt = 16, kHostIdBytes = 16;  // in an entry
constexpr std::size_t kCapabilitiesAt = 31;  // in Identify Namespace, which begins with the size

std::uint64_t number_at(std::span<const std::byte> data, std::size_t offset, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;)
    number = number << 8 | std::to_integer<std::uint64_t>(data[offset + i]);
  return number;
}

// FNV-1a.
void mix(std::uint64_t& hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ 0xff) * 0x100000001b3;  // "a" and "bc" are not "ab" and "c"
}

std::uint64_t key_of(std::initializer_list<std::string_view> parts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string_view part : parts) mix(hash, part);
  return std::max<std::uint64_t>(hash, 1);
}

}  // namespace

Result<ReservationReport> parse_reservation_report(std::span<const std::byte> data) {
  const std::string doing = "reading the reservation report: ";
  if (data.size() < kHeaderBytes) return fail(Errc::Invalid, doing + "it is cut off");
  ReservationReport report;
  report.generation = static_cast<std::uint32_t>(number_at(data, kGenerationAt, 4));
  report.type = static_cast<unsigned>(number_at(data, kTypeAt, 1));
  const auto count = static_cast<std::size_t>(number_at(data, kCountAt, 2));
  if (count > (data.size() - kHeaderBytes) / kEntryBytes) {
    return fail(Errc::Invalid,
                doing + "the target counts " + std::to_string(count) + " registrants and sends fewer");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = data.subspan(kHeaderBytes + i * kEntryBytes, kEntryBytes);
    report.registrants.push_back({format_uuid(entry.subspan(kHostIdAt, kHostIdBytes)),
                                  number_at(entry, kKeyAt, 8), (number_at(entry, kStatusAt, 1) & 1) != 0});
  }
  return report;
}

Result<std::uint8_t> parse_reservation_capabilities(std::span<const std::byte> data) {
  if (data.size() <= kCapabilitiesAt) return fail(Errc::Invalid, "identifying the namespace: it is cut off");
  if (number_at(data, 0, 8) == 0) return fail(Errc::Unavailable, "the namespace is not active");
  return static_cast<std::uint8_t>(number_at(data, kCapabilitiesAt, 1));
}

Machine read_machine(const SystemRoot& root) {
  Machine machine;
  machine.id = read_line_file(root / "etc/machine-id").value_or("");
  machine.board = lower(read_line_file(root / "sys/class/dmi/id/product_uuid").value_or(""));
  const bool is_common = std::ranges::find(kCommonBoardUuids, machine.board) != kCommonBoardUuids.end();
  if (!is_uuid(machine.board) || is_zero_uuid(machine.board) || is_common) machine.board.clear();
  return machine;
}

LocalRegistrant local_registrant(const HostIdentity& host, const Machine& machine) {
  const std::uint64_t without_board = key_of({host.nqn, host.id, machine.id});
  if (machine.board.empty()) return {host.id, without_board, 0};
  return {host.id, key_of({host.nqn, host.id, machine.id, machine.board}), without_board};
}

}  // namespace spark::nvmetcp
