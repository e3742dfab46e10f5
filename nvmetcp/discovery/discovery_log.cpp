#include "nvmetcp/discovery/discovery_log.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

constexpr int kAttempts = 10;
constexpr std::size_t kMostReasons = 20;

struct Header {
  std::uint64_t generation = 0;
  std::uint64_t entries = 0;
  bool operator==(const Header&) const = default;
};

// Byte offsets and lengths in header and entry (NVMe over Fabrics, "Get Log Page: Discovery Log").
struct Field {
  std::size_t offset, length;
};
constexpr Field kGeneration{0, 8}, kCount{8, 8}, kFormat{16, 2};
constexpr Field kTransport{0, 1}, kFamily{1, 1}, kKind{2, 1}, kService{32, 32}, kNqn{256, 256},
    kAddress{512, 256};

std::uint64_t little_endian(std::span<const std::byte> from, Field field) {
  std::uint64_t value = 0;
  for (std::size_t i = field.length; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(from[field.offset + i]);
  }
  return value;
}

// Ends at the first NUL or with the field, which need not hold one; padding is cut off.
std::string text_in(std::span<const std::byte> from, Field field) {
  std::string text;
  for (std::size_t i = 0; i < field.length; ++i) {
    const char c = static_cast<char>(from[field.offset + i]);
    if (c == '\0') break;
    text += c;
  }
  return std::string(trim(text));
}

template <class Value>
using Code = std::pair<std::uint64_t, Value>;
constexpr Code<const char*> kTransports[] = {{1, "rdma"}, {2, "fc"}, {3, "tcp"}, {254, "loop"}};
constexpr Code<const char*> kFamilies[] = {{1, "ipv4"}, {2, "ipv6"}, {3, "ib"}, {4, "fc"}, {254, "loop"}};
constexpr Code<SubsystemKind> kKinds[] = {
    {1, SubsystemKind::Referral}, {2, SubsystemKind::Io}, {3, SubsystemKind::Discovery}};

template <class Value>
std::optional<Value> decode(std::span<const Code<Value>> known, std::uint64_t code) {
  for (const auto& [number, value] : known)
    if (number == code) return value;
  return std::nullopt;
}

bool is_ip_address(const std::string& family, const std::string& text) {
  in6_addr address{};
  if (family == "ipv4") return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
  return family == "ipv6" && ::inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) == 1;
}

Result<> check_printable(const std::string& text, const char* what) {
  if (printable(text) == text) return {};
  return fail(Errc::Invalid, std::string(what) + " " + printable(text) + " is no text");
}

// Invalid: why this entry can't be believed.
Result<OfferedSubsystem> parse_entry(std::span<const std::byte> bytes) {
  OfferedSubsystem entry;
  entry.nqn = text_in(bytes, kNqn);
  entry.portal = {text_in(bytes, kAddress),
                  parse_number<std::uint16_t>(text_in(bytes, kService)).value_or(0)};
  entry.address_family = decode<const char*>(kFamilies, little_endian(bytes, kFamily)).value_or("unknown");
  if (auto valid = validate_nqn(entry.nqn, "subsystem"); !valid) return valid.take_error();
  if (auto valid = check_printable(entry.nqn, "subsystem"); !valid) return valid.take_error();
  const std::string whose = "subsystem " + entry.nqn;
  if (auto valid = check_printable(entry.portal.address, "address"); !valid) {
    return valid.take_error();
  }
  const auto kind = decode<SubsystemKind>(kKinds, little_endian(bytes, kKind));
  const auto transport = decode<const char*>(kTransports, little_endian(bytes, kTransport));
  if (!kind) return fail(Errc::Invalid, whose + " is of an unknown kind");
  if (!transport) return fail(Errc::Invalid, whose + " is offered over an unknown transport");
  entry.kind = *kind;
  entry.transport = *transport;
  if (entry.transport != "tcp") return entry;
  if (!is_ip_address(entry.address_family, entry.portal.address)) {
    return fail(Errc::Invalid, whose + " is offered at \"" + entry.portal.address + "\", which is no " +
                                   entry.address_family + " address");
  }
  if (entry.portal.port == 0) {
    return fail(Errc::Invalid,
                whose + " is offered at port \"" + printable(text_in(bytes, kService)) + "\", which is none");
  }
  return entry;
}

Result<Header> parse_header(std::span<const std::byte> bytes) {
  const Header header{little_endian(bytes, kGeneration), little_endian(bytes, kCount)};
  if (const auto format = little_endian(bytes, kFormat); format != 0) {
    return fail(Errc::Failed, "the discovery log has the unknown format " + std::to_string(format));
  }
  if (header.entries > kMostDiscoveryEntries) {
    return fail(Errc::Failed, "the discovery log claims " + std::to_string(header.entries) +
                                  " entries; more than " + std::to_string(kMostDiscoveryEntries) +
                                  " are not believed");
  }
  return header;
}

Result<Header> read_header(const DiscoveryLogReader& read) {
  std::vector<std::byte> bytes(kDiscoveryHeaderBytes);
  if (auto done = read(0, bytes); !done) return done.take_error();
  return parse_header(bytes);
}

bool is_wildcard(const std::string& address) {
  return address == "0.0.0.0" || address == "::";
}

}  // namespace

DiscoveryLog parse_discovery_entries(std::span<const std::byte> bytes) {
  DiscoveryLog log;
  std::size_t more_reasons = 0;
  for (std::size_t number = 1; bytes.size() >= kDiscoveryEntryBytes; ++number) {
    auto entry = parse_entry(bytes.first(kDiscoveryEntryBytes));
    bytes = bytes.subspan(kDiscoveryEntryBytes);
    if (entry) {
      log.entries.push_back(std::move(*entry));
    } else if (log.ignored.size() < kMostReasons) {
      log.ignored.push_back("entry " + std::to_string(number) + ": " + entry.error().what);
    } else {
      ++more_reasons;
    }
  }
  if (more_reasons > 0) log.ignored.push_back("and " + std::to_string(more_reasons) + " more");
  return log;
}

Result<DiscoveryLog> read_discovery_log(const DiscoveryLogReader& read, const Portal& reached) {
  auto before = read_header(read);
  for (int attempt = 0; before && attempt < kAttempts; ++attempt) {
    std::vector<std::byte> bytes(before->entries * kDiscoveryEntryBytes);
    if (!bytes.empty()) {
      if (auto done = read(kDiscoveryHeaderBytes, bytes); !done) {
        return done.take_error();
      }
    }
    auto after = read_header(read);
    if (after && *after == *before) {
      DiscoveryLog log = parse_discovery_entries(bytes);
      log.generation = before->generation;
      for (OfferedSubsystem& entry : log.entries) {
        if (is_wildcard(entry.portal.address)) entry.portal.address = reached.address;
      }
      return log;
    }
    before = std::move(after);
  }
  if (!before) return before.take_error();
  return fail(Errc::Unavailable,
              "the discovery log changed under each of " + std::to_string(kAttempts) + " reads",
              "the target's exports are being changed; try again");
}

}  // namespace spark::nvmetcp
