#include "daemon/mounts/mount_errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace spark::mounts {
namespace {

struct Explanation {
  int error_number;
  Errc kind;
  const char* why;
  const char* hint;
};

constexpr std::array kBlockErrors = {
    Explanation{EUCLEAN, Errc::Failed, "the file system is damaged",
                "unmount it everywhere, then run fsck on the host that writes it"},
    Explanation{EROFS, Errc::Denied, "the device is write-protected, and the mount has to write",
                "check the target's export, or use 'access: read-only'"},
    Explanation{EACCES, Errc::Denied, "the device is write-protected, and the mount has to write",
                "check the target's export, or use 'access: read-only'"},
    Explanation{EPERM, Errc::Denied, "this process may not mount", "run it as root"},
    Explanation{EBUSY, Errc::Refused, "the device is in use on this host",
                "`lsblk` and `findmnt` show its user: a mount, a device-mapper or MD device"},
    Explanation{ENODEV, Errc::Unsupported, "this kernel doesn't know the file system",
                "load its module, for example `modprobe xfs`, or install the kernel's extra modules"},
    Explanation{EIO, Errc::Unavailable, "the device doesn't answer reads",
                "the connection to the target may have gone; its state is in `spark-stage status`"},
    Explanation{ENXIO, Errc::Unavailable, "the device has gone", "the connection to the target was lost"},
    Explanation{ENOENT, Errc::Unavailable, "the device has gone", "the connection to the target was lost"},
    Explanation{EINVAL, Errc::Failed, "a mount option is wrong, or the superblock is",
                "check 'options' of the volume; `dmesg` has the kernel's words"},
    Explanation{EBADE, Errc::Refused, "another host holds a reservation on the namespace",
                "unmount it there first"},
};

// With MMP the kernel watches the block for its interval and then fails; the errno differs between kernels. A
// longer wait than usual is not a refusal.
bool is_mmp_refusal(int error_number, const Superblock& superblock, const std::string& kernel_words) {
  const auto says_so = [](const std::string& line) {
    const bool is_about_it = line.find("multi-mount") != std::string::npos ||
                             line.find("MMP") != std::string::npos ||
                             line.find("active on another node") != std::string::npos;
    return is_about_it && line.find("please wait") == std::string::npos;
  };
  const bool in_words = std::ranges::any_of(split(kernel_words, ';'), says_so);
  return superblock.has_mmp && (in_words || (error_number == EBUSY && superblock.being_written));
}

struct NfsExplanation {
  std::string_view words;
  Errc kind;
  const char* hint;
};

// In this order, because a message may contain more than one.
constexpr std::array kNfsErrors = {
    NfsExplanation{"access denied", Errc::Denied, "add this host to the server's export list"},
    NfsExplanation{"Operation not permitted", Errc::Denied, "add this host to the server's export list"},
    NfsExplanation{"Permission denied", Errc::Denied, "add this host to the server's export list"},
    NfsExplanation{"No such file or directory", Errc::NotFound,
                   "`showmount -e SERVER` lists the server's exports"},
    NfsExplanation{"No such device", Errc::Unsupported, "this kernel lacks the NFS client: `modprobe nfs`"},
    NfsExplanation{"Failed to resolve server", Errc::Unavailable,
                   "check the host name, or write the address"},
    NfsExplanation{"No route to host", Errc::Unavailable, "check the network and the server's address"},
    NfsExplanation{"Network is unreachable", Errc::Unavailable, "check the network and the server's address"},
    NfsExplanation{"Connection refused", Errc::Unavailable, "is the NFS server running there?"},
    NfsExplanation{"Program not registered", Errc::Unavailable, "is the NFS server running there?"},
    NfsExplanation{"timed out", Errc::TimedOut,
                   "is the server up, and does a firewall let port 2049 through?"},
    NfsExplanation{"Protocol not supported", Errc::Unsupported,
                   "the server lacks that version: check 'vers='"},
    NfsExplanation{"incorrect mount option", Errc::Invalid, "check 'options' of the volume"},
    NfsExplanation{"Invalid argument", Errc::Invalid, "check 'options' of the volume"},
    NfsExplanation{"Stale file handle", Errc::Unavailable, "the server's export changed: restart it there"},
};

// By a user who may rename a folder above it: see mount_onto().
Error moved_meanwhile(const MountRequest& request) {
  return {Errc::Refused, doing(request) + ": a folder above it was moved, or replaced by a link, meanwhile",
          "give the folders above the mount point to root"};
}

// One line, without the program's name before each message.
std::string sentence(std::string_view words) {
  std::string all;
  for (const std::string& line : split(words, '\n')) {
    std::string_view text = trim(line);
    if (text.starts_with("mount.nfs")) text.remove_prefix(std::min(text.find(": ") + 2, text.size()));
    if (!text.empty()) all += (all.empty() ? "" : "; ") + printable(text);
  }
  return all;
}

// "EXT4-fs (nvme3n1): …", "EXT4-fs warning (device nvme3n1): …", or, before a device is known, "ext4: Unknown
// …"
bool is_about(const std::string& message, const std::string& device, const std::string& type) {
  return message.find("(" + device + ")") != std::string::npos ||
         message.find("(device " + device + ")") != std::string::npos || message.starts_with(type + ": ");
}

}  // namespace

std::string doing(const MountRequest& request) {
  return "mounting " + printable(request.source) + " at " + printable(request.target.native());
}

std::string kernel_words(const MountOutcome& outcome, KernelLog& log, const std::filesystem::path& device,
                         const std::string& type) {
  if (!outcome.kernel_words.empty()) return outcome.kernel_words;
  constexpr std::size_t kMostMessages = 3;
  std::vector<std::string> all = log.lines("");
  std::erase_if(all,
                [&](const std::string& line) { return !is_about(line, device.filename().native(), type); });
  all.resize(std::min(all.size(), kMostMessages));
  return join(all, "; ");
}

Error explain_block_mount(const MountRequest& request, int error_number, const Superblock& superblock,
                          const std::string& kernel_words) {
  const std::string kernel = kernel_words.empty() ? "" : " (kernel: " + kernel_words + ")";
  if (is_mmp_refusal(error_number, superblock, kernel_words)) {
    const std::string who =
        superblock.mmp_node.empty() ? "another host" : "host '" + superblock.mmp_node + "'";
    return {Errc::Refused, doing(request) + ": " + who + " has it open, or died while it had (MMP)" + kernel,
            "unmount it there; if that host is gone for good, `spark-stage volumes take` takes it over"};
  }
  if (kernel_words.find("duplicate UUID") != std::string::npos) {
    return {Errc::Unavailable,
            doing(request) + ": the kernel has a file system of the same UUID already" + kernel,
            "`findmnt -t xfs` shows it, if it is mounted; else end the programs that have files of a dead "
            "mount open"};
  }
  if (error_number == ELOOP) return moved_meanwhile(request);
  for (const Explanation& known : kBlockErrors) {
    if (known.error_number == error_number) {
      return {known.kind, doing(request) + ": " + known.why + kernel, known.hint};
    }
  }
  return fail_errno(error_number, doing(request) + kernel).value();
}

Error explain_nfs_mount(const MountRequest& request, const MountOutcome& outcome) {
  if (outcome.error_number == ELOOP) return moved_meanwhile(request);
  const std::string words = sentence(outcome.helper_words);
  for (const NfsExplanation& known : kNfsErrors) {
    if (words.find(known.words) != std::string::npos) {
      return {known.kind, doing(request) + ": " + words, known.hint};
    }
  }
  if (outcome.helper_status == 0) return fail_errno(outcome.error_number, doing(request)).value();
  const std::string status = "mount.nfs ended with status " + std::to_string(outcome.helper_status);
  return {Errc::Failed, doing(request) + ": " + (words.empty() ? status : words), "`dmesg` may say more"};
}

}  // namespace spark::mounts
