#include "daemon/mounts/hidden_mount.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <vector>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "daemon/mounts/mount_point.hpp"

namespace spark::mounts {
namespace {

namespace fs = std::filesystem;

// For a thread of its own, which alone gets the namespace. A mount that belongs to no namespace, or none.
UniqueFd mount_hidden(const std::string& source, const fs::path& target, const std::string& type,
                      const std::string& options, MountOutcome& outcome) {
  // A slave: what is unmounted on the host meanwhile is unmounted here too.
  const bool is_hidden =
      ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
  outcome = call_mount(source, target, type, options);
  if (!is_hidden || !outcome.done()) return {};
  const auto mounted = open_mount_point(target);
  errno = ELOOP;
  UniqueFd tree(mounted ? ::open_tree(mounted->get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)
                        : -1);
  if (!tree) outcome.error_number = errno;
  // A helper of NFS may leave a daemon behind, which would keep the namespace, and this mount with it.
  ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  return tree;
}

}  // namespace

bool propagates_mounts() {
  const auto text = read_file("/proc/self/mountinfo");
  bool propagates = false;
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    constexpr std::size_t kMountPoint = 4, kFirstOptional = 6;
    if (fields.size() <= kFirstOptional || fields[kMountPoint] != "/") continue;
    propagates = fields[kFirstOptional].starts_with("shared:");  // the last one is on top
  }
  return propagates;
}

MountOutcome mount_onto(const UniqueFd& folder, const std::string& source, const fs::path& target,
                        const std::string& type, const std::string& options) {
  if (!propagates_mounts()) return call_mount(source, target, type, options);
  MountOutcome outcome;
  UniqueFd tree;
  auto thread = start_thread([&] { tree = mount_hidden(source, target, type, options, outcome); });
  if (!thread.joinable()) {
    outcome.error_number = EAGAIN;
    return outcome;
  }
  thread.join();
  if (!tree) return outcome;
  if (::move_mount(tree.get(), "", folder.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) !=
      0) {
    outcome.error_number = errno;
    return outcome;
  }
  const fs::path name = held_path(tree);
  std::error_code error;
  if (fs::read_symlink(name, error) == target) return outcome;
  ::umount2(name.c_str(), MNT_DETACH);
  outcome.error_number = ELOOP;
  return outcome;
}

}  // namespace spark::mounts
