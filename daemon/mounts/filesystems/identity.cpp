#include "daemon/mounts/filesystems/identity.hpp"

#include <blkid.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::mounts {
namespace {

using Probe = std::unique_ptr<blkid_struct_probe, decltype(&blkid_free_probe)>;

std::string value_of(const Probe& probe, const char* name) {
  const char* value = nullptr;
  if (blkid_probe_lookup_value(probe.get(), name, &value, nullptr) != 0 || value == nullptr) return {};
  return printable(value);
}

// libblkid 2.41 returns the code of a failed read for two signatures: -1 instead of -2.
bool has_several_signatures(const Probe& probe) {
  blkid_reset_probe(probe.get());
  int signatures = 0;
  while (signatures < 2 && blkid_do_probe(probe.get()) == 0) {
    if (!value_of(probe, "TYPE").empty()) ++signatures;
  }
  return signatures > 1;
}

}  // namespace

Result<Identity> identify(const std::filesystem::path& device) {
  const std::string name = printable(device.native());
  const UniqueFd fd(::open(device.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, "opening " + name);
  // libblkid can't read directly; a page cached before another host wrote would be outdated.
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const Probe probe(blkid_new_probe(), &blkid_free_probe);
  if (!probe || blkid_probe_set_device(probe.get(), fd.get(), 0, 0) != 0) {
    return fail_errno(errno != 0 ? errno : EIO, "preparing to identify " + name);
  }
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID | BLKID_SUBLKS_LABEL);
  blkid_probe_enable_partitions(probe.get(), 1);
  errno = 0;
  const int found = blkid_do_safeprobe(probe.get());
  const int failed = errno;
  if (found == -2 || (found < 0 && has_several_signatures(probe))) {
    return fail(Errc::Refused, name + " carries signatures of more than one file system",
                "`wipefs " + name + "` lists them; a person has to decide which one is true");
  }
  if (found < 0) return fail_errno(failed != 0 ? failed : EIO, "identifying " + name);
  return Identity{value_of(probe, "TYPE"), value_of(probe, "UUID"), value_of(probe, "LABEL"),
                  value_of(probe, "PTTYPE")};
}

}  // namespace spark::mounts
