// Identifies an unchanged file of a source: the only notion of "unchanged", for the cache, `copy` and the
// fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct SourceIdentity {
  Bytes size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  std::uint64_t inode = 0;
  bool operator==(const SourceIdentity&) const = default;
};

inline SourceIdentity identity_of(const Entry& entry) {
  return {entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode};
}

inline void add(Hasher& hasher, const SourceIdentity& identity) {
  hasher.add_number(identity.size);
  hasher.add_number(static_cast<std::uint64_t>(identity.mtime_ns));
  hasher.add_number(static_cast<std::uint64_t>(identity.ctime_ns));
  hasher.add_number(identity.inode);
}

// How long a change of a file with this ctime may still get the same time. File systems count in seconds (two
// on FAT), or in the kernel's ticks. `seen_for`: since the ctime was read, when the file system's own clock
// was at least there. That clock may differ from this host's by any time, so an old ctime proves nothing.
std::chrono::nanoseconds unsettled_for(std::int64_t ctime_ns, std::chrono::nanoseconds seen_for);

// Besides the files, hosts compare these to know that they stage the same set.
struct SetOrigin {
  std::string state;   // of the volume that is copied, see Source::state; empty means unknown
  std::string source;  // see Source::origin
};

// Of names of file systems that are kept over restarts of the host: the type, and an identity if it has one.
// "ext4 uuid:…", or "ext4 fsid:…" where the kernel does not tell its UUID; "nfs from:SERVER:/EXPORT";
// "tmpfs". Empty: unknown. Identities of different kinds can't be compared.
bool is_other_file_system(std::string_view then, std::string_view now);

}  // namespace spark::staging
