// The discovery log page: read until it holds still, and made into entries that can be believed. Every byte
// comes from the network. Pure but for the reader that is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

inline constexpr std::size_t kDiscoveryHeaderBytes = 1024;
inline constexpr std::size_t kDiscoveryEntryBytes = 1024;
inline constexpr std::uint64_t kMostDiscoveryEntries = 16384;

// Fills the whole span with the log's bytes from `offset` on. Is never asked for bytes past the log's end:
// targets before Linux 7.1.4 answer that from memory that is not theirs to send (CVE-2026-64320).
using DiscoveryLogReader = std::function<Result<>(std::uint64_t offset, std::span<std::byte> into)>;

// Unavailable: the log changed under every attempt. Failed: a count or format that can't be. Wildcard
// addresses in entries become `reached`, the address that answered.
Result<DiscoveryLog> read_discovery_log(const DiscoveryLogReader& read, const Portal& reached);

// The entries in `bytes`; a piece of an entry at the end is left out. Those that can't be believed become
// sentences in `ignored`.
DiscoveryLog parse_discovery_entries(std::span<const std::byte> bytes);

}  // namespace spark::nvmetcp
