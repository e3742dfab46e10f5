// The state of a file system that its writer published last: a number and who gave it, in a small file of the
// file system itself. Touches the mount: workers only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::mounts {

inline constexpr char kPublishedFile[] = ".spark-stage/published.json";

struct Published {
  std::uint64_t generation = 0;  // counted from 1; a publishing that failed may leave a gap
  std::string host;              // that published it
  std::string at;                // RFC 3339, by that host's clock
  bool operator==(const Published&) const = default;
};

json::object to_json(const Published& published);
std::optional<Published> published_from_json(const json::object& object);

// None: nothing was ever published there, or what is there can't be understood. An error: it can't be read.
Result<std::optional<Published>> read_published(const std::filesystem::path& mount);

// Durable when it returns.
Result<> write_published(const std::filesystem::path& mount, const Published& published);

// The first write to a file system that is writable now. An xfs shows its readers that somebody has it open
// from the first write to its log on, and content may come before that; ext4 says so in its superblock at
// once. A full file system is left as it is.
Result<> announce_writer(const std::filesystem::path& mount, const std::string& host, WallTime now);

}  // namespace spark::mounts
