// A view as a mounted file system: its mount, and the process that answers for it.
#pragma once

#include <filesystem>
#include <functional>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/view/view_map.hpp"
#include "staging/view/view_reader.hpp"
#include "staging/view/view_tree.hpp"

namespace spark::staging {

// The device of a new connection to the kernel. The file system ends when the last process closes it.
Result<UniqueFd> open_fuse_device();

inline constexpr char kFuseType[] = "fuse.spark-stage";  // in the mount table

// Mounts the view read-only on the folder. `name`: of the dataset, for the mount table.
Result<> mount_fuse(const UniqueFd& device, const std::filesystem::path& folder, const std::string& name);

struct FuseSession {
  const ViewTree& tree;
  ViewMap& map;
  int device = -1;
  // An earlier process answered: the kernel sends its unanswered requests again. Unsupported if it can't, as
  // their readers would wait forever.
  bool is_taken_over = false;
  // From one thread: the kernel is there, and whether another process could take over.
  std::function<void(bool can_resend)> begun{};
  // From any thread, one at a time.
  ViewReader::Failed failed{};
};

// Answers the kernel until the file system is unmounted and no longer used, or its connection is aborted.
Result<> serve_fuse(const FuseSession& session);

// Of a connection: its number is the minor one of the mounted file system. Writing "1" ends it, and all of
// its readers with an error. None if there is no such connection.
UniqueFd open_abort_file(unsigned connection);

// Makes the kernel drop the pages of nodes 0 to `nodes`. Such a notice waits, unkillable, for a page that is
// being read, and keeps the connection: so if this process is killed and can't end, the connection is ended.
// For a process that answers nothing and has no other thread.
Result<> drop_fuse_pages(const UniqueFd& device, unsigned connection, std::uint64_t nodes);

}  // namespace spark::staging
