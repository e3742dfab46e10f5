#include "cli/format/new_filesystem.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"
#include "daemon/mounts/filesystems/direct_read.hpp"
#include "daemon/mounts/filesystems/identity.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"

namespace spark::cli {
namespace {

constexpr char kNothingWritten[] = "nothing was written";
constexpr char kHowToErase[] = "docs/troubleshooting.md has the commands that erase it";
constexpr std::size_t kPiece = kMiB;

std::string name_of(const std::string& type) {
  constexpr std::array kNames = {std::array{"LVM2_member", "an LVM physical volume"},
                                 std::array{"LVM1_member", "an LVM physical volume"},
                                 std::array{"crypto_LUKS", "a LUKS volume (encrypted)"},
                                 std::array{"linux_raid_member", "a member of a Linux RAID"},
                                 std::array{"zfs_member", "a member of a ZFS pool"}};
  for (const auto& [known, name] : kNames) {
    if (type == known) return name;
  }
  return type;
}

std::string describe(const mounts::Identity& found) {
  if (found.type.empty()) return "a " + found.partition_table + " partition table";
  return name_of(found.type) + (found.uuid.empty() ? "" : " with UUID " + found.uuid) +
         (found.label.empty() ? "" : ", label '" + found.label + "'");
}

Result<> check_number(int fd, const BlankDevice& device, const std::string& doing) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno(errno, doing);
  if (S_ISBLK(status.st_mode) && status.st_rdev == device.number) return {};
  return fail(Errc::Refused, doing + ": it is another device by now",
              std::string(kNothingWritten) + "; try again");
}

// Mounted, swapped to, or a part of another device: an exclusive open then fails.
Result<UniqueFd> open_alone(const BlankDevice& device, const std::string& doing) {
  UniqueFd fd(::open(device.path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == EBUSY) {
    return fail(Errc::Refused, doing + ": it is in use on this host",
                std::string(kNothingWritten) + "; `lsblk` and `findmnt` show how");
  }
  if (!fd) return fail_errno(errno, doing);
  if (auto same = check_number(fd.get(), device, doing); !same) return same.take_error();
  return fd;
}

Result<> check_no_signature(const std::string& device, const std::string& doing) {
  const auto found = mounts::identify(device);
  if (!found) return fail_with(found.error(), doing);
  if (found->type.empty() && found->partition_table.empty()) return {};
  return fail(Errc::Refused, doing + ": it holds " + describe(*found),
              std::string(kNothingWritten) + "; is it the right namespace? `wipefs " + device +
                  "` shows what it holds; " + kHowToErase);
}

Result<bool> is_blank(const mounts::DirectReader& device, Bytes from, Bytes to) {
  for (Bytes at = from; at < to; at += kPiece) {
    const auto piece = device.read(at, std::min<Bytes>(kPiece, to - at));
    if (!piece) return piece.take_error();
    if (!std::all_of(piece->begin(), piece->end(), [](std::uint8_t byte) { return byte == 0; })) return false;
  }
  return true;
}

Result<> check_ends(const std::string& device, const std::string& doing) {
  const auto reader = mounts::DirectReader::open(device);
  if (!reader) return fail_with(reader.error(), doing);
  const Bytes size = reader->size(), end = std::min(kBlankEnds, size);
  for (const bool first : {true, false}) {
    const auto blank = first ? is_blank(*reader, 0, end) : is_blank(*reader, size - end, size);
    if (!blank) return fail_with(blank.error(), doing);
    if (*blank) continue;
    return fail(Errc::Refused,
                doing + ": its " + (first ? "first" : "last") +
                    " 4 MiB are not empty, although no signature is known in them",
                std::string(kNothingWritten) +
                    "; it may be data without a signature, or the remains of an interrupted mkfs; " +
                    kHowToErase);
  }
  return {};
}

// So that two of us never work on one device, and udev does not look at it half-made
// (systemd.io/BLOCK_DEVICE_LOCKING). Open for writing, so that udev looks when it is closed. While it is
// open, its name can't become another device's.
Result<UniqueFd> lock(const BlankDevice& device, const std::string& doing) {
  UniqueFd fd(::open(device.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, doing);
  if (auto same = check_number(fd.get(), device, doing); !same) return same.take_error();
  for (int tries = 0; tries < 50; ++tries) {  // udev itself has it for a moment
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno(errno, doing);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return fail(
      Errc::Refused, doing + ": another program has locked it",
      std::string(kNothingWritten) + "; is another `volumes format` running? `lsof` shows the process");
}

// Nothing is discarded: it takes long on some targets, and after a mistake the data between the metadata
// survives. Neither program is forced: each also checks for signatures and users itself.
std::vector<std::string> mkfs_command(const std::string& device, const NewFilesystem& wanted) {
  if (wanted.type == "xfs")
    return {"mkfs.xfs", "-q", "-K", "-m", "uuid=" + wanted.uuid, "-L", wanted.label, device};
  return {"mkfs.ext4", "-q", "-b",        "4096", "-O",         "mmp", "-E",
          "nodiscard", "-U", wanted.uuid, "-L",   wanted.label, device};
}

std::string last_words(const ChildOutput& output) {
  const std::string text(trim(trim(output.err).empty() ? output.out : output.err));
  std::vector<std::string> lines = split(text, '\n');
  constexpr std::size_t kShown = 4;
  if (lines.size() > kShown) lines.erase(lines.begin(), lines.end() - kShown);
  return text.empty() ? "it says nothing" : printable(join(lines, "; "));
}

Result<> run_mkfs(const std::vector<std::string>& argv, const std::string& doing,
                  std::chrono::milliseconds deadline) {
  const std::string package = argv[0] == "mkfs.xfs" ? "xfsprogs" : "e2fsprogs";
  const auto made = run_child(argv, deadline);
  if (!made && made.error().kind == Errc::NotFound)
    return fail(Errc::Unsupported, doing + ": " + argv[0] + " is not there", "install " + package);
  if (!made) return fail_with(made.error(), doing);
  if (made->exit_status == 0) return {};
  return fail(
      Errc::Failed,
      doing + ": " + argv[0] + " ended with " + std::to_string(made->exit_status) + ": " + last_words(*made),
      "there is no file system yet; repeat the command");
}

// The target now returns the new file system to other hosts.
Result<> check_made(const std::string& device, const NewFilesystem& wanted, const std::string& doing) {
  const auto found = mounts::read_superblock(device);
  if (!found) return fail_with(found.error(), doing + ", reading it back");
  const bool is_it = found->type == wanted.type && found->uuid == wanted.uuid &&
                     found->label == wanted.label && found->has_mmp == (wanted.type == "ext4") &&
                     !found->being_written && found->damage.empty();
  if (is_it) return {};
  return fail(Errc::Mismatch,
              doing + ": the file system read back differs from the one made: " +
                  (found->type.empty() ? "no file system" : found->type + " " + found->uuid),
              "does another host write to this namespace, or does the target lose writes?");
}

}  // namespace

std::size_t longest_label(const std::string& type) {
  return type == "xfs" ? 12 : 16;
}

Result<> check_label(const std::string& label, const std::string& type) {
  const std::string doing = "label '" + printable(label) + "': ";
  const bool plain = std::all_of(label.begin(), label.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (label.empty() || !plain || label.starts_with('-'))
    return fail(Errc::Invalid,
                doing + "a label is letters, digits and signs without spaces, and begins with no dash");
  if (label.size() <= longest_label(type)) return {};
  return fail(Errc::Invalid,
              doing + type + " has room for " + std::to_string(longest_label(type)) + " characters");
}

Result<> check_blank(const BlankDevice& device) {
  const std::string doing = "making a file system on " + printable(device.path);
  const auto alone = open_alone(device, doing);
  if (!alone) return alone.take_error();
  if (auto none = check_no_signature(device.path, doing); !none) return none;
  return device.leftovers == Leftovers::Ours ? Result<>{} : check_ends(device.path, doing);
}

Result<> make_filesystem(const BlankDevice& device, const NewFilesystem& wanted,
                         const std::function<Result<>()>& before_writing,
                         std::chrono::milliseconds deadline) {
  const std::string doing = "making a file system on " + printable(device.path);
  if (auto blank = check_blank(device); !blank) return blank;
  if (auto writable = mounts::set_device_read_only(device.path, false); !writable) return writable;
  const auto locked = lock(device, doing);
  if (!locked) return locked.take_error();
  if (auto blank = check_blank(device); !blank) return blank;  // the former lock holder may have written
  if (auto agreed = before_writing(); !agreed) return agreed;
  if (auto made = run_mkfs(mkfs_command(device.path, wanted), doing, deadline); !made) return made;
  return check_made(device.path, wanted, doing);
}

}  // namespace spark::cli
