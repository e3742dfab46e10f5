// Whatever a target sends as its discovery log, what comes out is what types.hpp promises.
#include <arpa/inet.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/text.hpp"
#include "nvmetcp/discovery/discovery_log.hpp"
#include "nvmetcp/validate.hpp"

namespace {

using namespace spark;
using namespace spark::nvmetcp;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const DiscoveryLog& log) {
  for (const OfferedSubsystem& entry : log.entries) {
    require(validate_nqn(entry.nqn, "subsystem").has_value());
    require(printable(entry.nqn) == entry.nqn && printable(entry.portal.address) == entry.portal.address);
    require(entry.transport != "tcp" || validate(entry.portal).has_value());
  }
  for (const std::string& reason : log.ignored) require(printable(reason) == reason);
  require(log.ignored.size() <= 21);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check(parse_discovery_entries(bytes));

  // The same bytes as a whole log, read through the loop that trusts no count.
  std::size_t asked = 0;
  const DiscoveryLogReader reader = [&](std::uint64_t offset, std::span<std::byte> into) -> Result<> {
    asked += into.size();
    require(asked <= 64 * (kMostDiscoveryEntries + 2) * kDiscoveryEntryBytes);
    if (offset + into.size() > size) return fail(Errc::Unavailable, "the log ends here");
    std::memcpy(into.data(), data + offset, into.size());
    return {};
  };
  if (const auto log = read_discovery_log(reader, {"10.0.0.5", 4420})) check(*log);
  return 0;
}
