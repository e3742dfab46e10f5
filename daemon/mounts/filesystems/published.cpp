#include "daemon/mounts/filesystems/published.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

constexpr std::size_t kLongest = 4096;

constexpr char kFolder[] = ".spark-stage", kWriterFile[] = "writer.json";

std::string reading(const std::filesystem::path& mount) {
  return "reading " + printable((mount / kPublishedFile).native());
}

// The file system's writer may have replaced this folder or a file in it by a link, a pipe or a mount.
UniqueFd open_own(const UniqueFd& parent, const std::string& name, int flags) {
  constexpr int kNothingElse = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd own(::openat(parent.get(), name.c_str(), O_RDONLY | kNothingElse | flags));
  struct stat above {};
  struct stat here {};
  if (!own || ::fstat(parent.get(), &above) != 0 || ::fstat(own.get(), &here) != 0) return {};
  if (above.st_dev == here.st_dev) return own;
  errno = EXDEV;
  return {};
}

UniqueFd open_root(const std::filesystem::path& mount) {
  return UniqueFd(::open(mount.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

UniqueFd open_folder(const std::filesystem::path& mount) {
  const UniqueFd root = open_root(mount);
  return root ? open_own(root, kFolder, O_DIRECTORY) : UniqueFd();
}

// Durable when it returns; the folder is created if it is missing.
Result<> write_own(const std::filesystem::path& mount, const std::string& name, const json::object& content) {
  const std::filesystem::path path = mount / kFolder;
  const UniqueFd root = open_root(mount);
  if (!root) return fail_errno(errno, "opening " + printable(mount.native()));
  if (::mkdirat(root.get(), kFolder, 0755) != 0 && errno != EEXIST)
    return fail_errno(errno, "making folder " + printable(path.native()));
  const UniqueFd folder = open_own(root, kFolder, O_DIRECTORY);
  if (!folder) {
    return fail(Errc::Refused, printable(path.native()) + " is not a folder of this file system",
                "move it away: spark-stage keeps there which state was published");
  }
  // Leads to that folder, whatever replaces it meanwhile.
  const std::filesystem::path checked = held_path(folder) / name;
  auto written = write_file_atomically(checked, json::serialize(content) + "\n");
  if (!written)
    written = fail_with(std::move(written.error()), "writing " + printable((path / name).native()));
  return written;
}

// Durable when it returns.
Result<> remove_own(const std::filesystem::path& mount, const std::string& name) {
  const UniqueFd folder = open_folder(mount);
  if (folder && ::unlinkat(folder.get(), name.c_str(), 0) == 0 && ::fsync(folder.get()) == 0) return {};
  if (errno == ENOENT) return {};
  return fail_errno(errno, "removing " + printable((mount / kFolder / name).native()));
}

// An xfs writes its superblock, with the number of the newest record of its log, when it gets a label: the
// one that it has. Linux before 4.18 can't.
Result<> rewrite_xfs_superblock(const std::filesystem::path& mount) {
  const UniqueFd root(::open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs info {};
  std::array<char, FSLABEL_MAX> label{};
  if (root && ::fstatfs(root.get(), &info) == 0 && info.f_type != XFS_SUPER_MAGIC) return {};
  const bool is_written = root && ::ioctl(root.get(), FS_IOC_GETFSLABEL, label.data()) == 0 &&
                          ::ioctl(root.get(), FS_IOC_SETFSLABEL, label.data()) == 0;
  if (is_written || errno == ENOTTY) return {};
  return fail_errno(errno, "writing the superblock of " + printable(mount.native()));
}

}  // namespace

json::object to_json(const Published& published) {
  return {{"generation", published.generation}, {"host", published.host}, {"at", published.at}};
}

std::optional<Published> published_from_json(const json::object& object) {
  const auto generation = get_int(object, "generation");
  if (!generation || *generation < 1) return std::nullopt;
  return Published{static_cast<std::uint64_t>(*generation), get_text(object, "host"), get_text(object, "at")};
}

Result<std::optional<Published>> read_published(const std::filesystem::path& mount) {
  const UniqueFd folder = open_folder(mount);
  const UniqueFd fd =
      folder ? open_own(folder, std::filesystem::path(kPublishedFile).filename(), 0) : UniqueFd();
  struct stat info {};
  if (!fd) {
    if (errno == EIO || errno == ESTALE) return fail_errno(errno, reading(mount));
    return std::optional<Published>();
  }
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::optional<Published>();
  std::array<char, kLongest> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(errno, reading(mount));
  const auto object = parse_json_object(std::string_view(text.data(), static_cast<std::size_t>(got)));
  return object ? published_from_json(*object) : std::optional<Published>();
}

Result<> write_published(const std::filesystem::path& mount, const Published& published) {
  return write_own(mount, std::filesystem::path(kPublishedFile).filename(), to_json(published));
}

Result<> announce_writer(const std::filesystem::path& mount, const std::string& host, WallTime now) {
  auto written = write_own(mount, kWriterFile, {{"host", host}, {"since", rfc3339(now)}});
  if (!written && written.error().kind != Errc::NoSpace) return written;
  return rewrite_xfs_superblock(mount);
}

Result<> remove_published(const std::filesystem::path& mount) {
  return remove_own(mount, std::filesystem::path(kPublishedFile).filename());
}

Result<> withdraw_writer(const std::filesystem::path& mount) {
  return remove_own(mount, kWriterFile);
}

Result<bool> is_writer_announced(const std::filesystem::path& mount) {
  const UniqueFd folder = open_folder(mount);
  struct stat status {};
  if (folder && ::fstatat(folder.get(), kWriterFile, &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(errno, "looking at " + printable((mount / kFolder / kWriterFile).native()));
}

}  // namespace spark::mounts
