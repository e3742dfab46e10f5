// The state that a file system's writer published last: a number and the writer's name, in a small file on
// the file system itself. Accesses the mount: workers only.
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
  std::uint64_t generation = 0;  // counted from 1; one that a crash interrupts may leave a gap
  std::string host;              // the publisher
  std::string at;                // RFC 3339, by the publisher's clock
  bool operator==(const Published&) const = default;
};

json::object to_json(const Published& published);
std::optional<Published> published_from_json(const json::object& object);

// None if nothing was ever published there, or the file is invalid. An error if it can't be read.
Result<std::optional<Published>> read_published(const std::filesystem::path& mount);

// Durable when they return.
Result<> write_published(const std::filesystem::path& mount, const Published& published);
Result<> remove_published(const std::filesystem::path& mount);

// The first write to a file system that is writable now. Readers of an xfs see that it is open only from the
// first write to its log, and content may be written before that; ext4 marks its superblock immediately. The
// superblock of an xfs is written as well, so that its stamp tells an earlier writer, whose reservation the
// target has forgotten, of this one. No file is written to a full file system.
Result<> announce_writer(const std::filesystem::path& mount, const std::string& host, WallTime now);
// The reverse, before the file system is closed for its readers: no writer has opened it since.
Result<> withdraw_writer(const std::filesystem::path& mount);
Result<bool> is_writer_announced(const std::filesystem::path& mount);

}  // namespace spark::mounts
