#include "tests/histories/copies/host/drives.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "base/file.hpp"
#include "tests/histories/copies/host/files.hpp"
#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/host/process.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

constexpr char kFiller[] = ".other-data";

// Its source tells it from the others, as the identity of a drive does.
void mount_memory(const fs::path& at, Bytes size) {
  fs::create_directories(at);
  const std::string options = "mode=755,size=" + std::to_string(size);
  if (::mount(at.filename().c_str(), at.c_str(), "tmpfs", 0, options.c_str()) != 0)
    throw_errno("mounting " + at.native());
}

void bind(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0)
    throw_errno("binding " + to.native());
}

fs::path disk(const std::string& name) {
  return fs::path(places::kRoot) / "disks" / name;
}

}  // namespace

void enter_own_namespace() {
  if (::unshare(CLONE_NEWNS) != 0)
    throw std::runtime_error("these histories mount file systems in memory: run them as root");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw_errno("leaving the host's mounts");
  // As systemd does on a host: copies are then mounted read-only for jobs.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0)
    throw_errno("sharing mounts with workers");
  mount_memory(places::kRoot, kMiB);
  if (::setxattr(places::kRoot, "user.note", "1", 1, 0) != 0)
    throw_errno("sources need user attributes, which file systems in memory have from Linux 6.6 on");
  ::umount2(places::kRoot, MNT_DETACH);
}

Drives::Drives(const DriveSizes& sizes) {
  mount_memory(places::kRoot, 64 * kMiB);
  mount_memory(places::kDrive, sizes.cache);
  // Else the read-only mount over the copies would appear here too.
  if (::mount(nullptr, places::kDrive, nullptr, MS_PRIVATE, nullptr) != 0)
    throw_errno("separating the drive");
  bind(places::kDrive, places::kCache);
  mount_memory(places::kState, sizes.state);
  mount_memory(disk("other"), kMiB);
  // What is found where another disk is mounted, or none.
  for (const char* folder : {"disks/other/imagenet", "disks/other/text", "nas/text"})
    fs::create_directories(fs::path(places::kRoot) / folder);
  for (const char* file : {"README", "imagenet/README", "text/README"})
    std::ofstream(disk("other") / file) << "another disk\n";
}

Drives::~Drives() {
  ::umount2(places::kRoot, MNT_DETACH);
}

fs::path Drives::add_disk(const std::string& name) {
  mount_memory(disk(name), 16 * kMiB);
  fs::create_directories(mount_point(name));
  mounted_[name] = Mounted::Nothing;
  mount(name, Mounted::Right);
  return disk(name);
}

fs::path Drives::mount_point(const std::string& name) {
  return fs::path(places::kRoot) / name;
}

mounts::MountNumbers Drives::numbers(const std::string& name) {
  struct statx info {};
  if (::statx(AT_FDCWD, mount_point(name).c_str(), 0, STATX_MNT_ID, &info) != 0)
    throw_errno("looking at " + mount_point(name).native());
  return {static_cast<int>(info.stx_mnt_id), makedev(info.stx_dev_major, info.stx_dev_minor)};
}

void Drives::mount(const std::string& name, Mounted what) {
  if (mounted_[name] != Mounted::Nothing) ::umount2(mount_point(name).c_str(), MNT_DETACH);
  mounted_[name] = what;
  if (what != Mounted::Nothing) bind(disk(what == Mounted::Right ? name : "other"), mount_point(name));
}

int Drives::namespace_for_workers() {
  const fs::path copies = fs::path(places::kCache) / "data";
  struct statvfs info {};
  const bool is_served = for_workers_ || (::statvfs(copies.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY));
  if (for_workers_ || !is_served) return for_workers_.get();
  const Process owner([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
        ::umount2(copies.c_str(), MNT_DETACH) != 0)
      ::_exit(1);
  });
  for_workers_.reset(
      ::open(("/proc/" + std::to_string(owner.pid()) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  return for_workers_.get();
}

Bytes Drives::free_on(const fs::path& drive) {
  struct statvfs info {};
  if (::statvfs(drive.c_str(), &info) != 0) throw_errno("asking for the space of " + drive.native());
  return static_cast<Bytes>(info.f_bavail) * info.f_frsize;
}

void Drives::fill(const fs::path& drive, Bytes left) {
  const Bytes free = free_on(drive);
  const UniqueFd file(::open((drive / kFiller).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return;  // not even an inode is left
  if (free > left) (void)!::fallocate(file.get(), 0, info.st_size, static_cast<off_t>(free - left));
}

void Drives::unfill(const fs::path& drive) {
  ::unlink((drive / kFiller).c_str());
}

std::map<ino_t, Bytes> Drives::files_below(const std::vector<fs::path>& folders) {
  std::map<ino_t, Bytes> files;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
      struct stat info {};
      if (::lstat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
        files[info.st_ino] = static_cast<Bytes>(info.st_blocks) * 512;
    }
  }
  return files;
}

Bytes Drives::sum_of(const std::map<ino_t, Bytes>& files) {
  Bytes sum = 0;
  for (const auto& [inode, bytes] : files) sum += bytes;
  return sum;
}

}  // namespace spark::histories::copies
