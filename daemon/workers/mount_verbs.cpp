#include <sys/statvfs.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "daemon/mounts/superblock.hpp"
#include "daemon/workers/verbs.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::workers {

// {"device"} → superblock
Result<json::object> superblock_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return mounts::read_superblock(get_string(request, "device").value_or("")).map([](const auto& superblock) {
    return to_json(superblock);
  });
}

// {"mount": request, "pin_file"?, "pin"?} → {"done"}. The pin is written only when the mount has succeeded:
// it records which file system this volume is from now on.
Result<json::object> mount_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* wanted = get_object(request, "mount");
  if (wanted == nullptr) return fail(Errc::Invalid, "mount worker: no mount in the request");
  mounts::LibmountMounter mounter;
  auto change = mounter.mount(mount_request_from_json(*wanted));
  if (!change) return tl::unexpected<Error>(std::move(change.error()));
  if (const auto pin_file = get_string(request, "pin_file")) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(*pin_file).parent_path(), ignored);
    const json::object* pin = get_object(request, "pin");
    const std::string content = pin == nullptr ? "" : json::serialize(*pin) + "\n";
    if (auto written = write_file_atomically(*pin_file, content); !written) {
      return fail_with(std::move(written.error()), "recording the volume's file system");
    }
  }
  return to_json(*change);
}

// {"target", "detach"} → {"done"}
Result<json::object> unmount_verb(const json::object& request, const ProgressLine& /*progress*/) {
  mounts::LibmountMounter mounter;
  return mounter
      .unmount(get_string(request, "target").value_or(""), get_bool(request, "detach").value_or(false))
      .map([](Change change) { return to_json(change); });
}

// {"path"} → {}: answers when the mounted file system does.
Result<json::object> probe_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string path = get_string(request, "path").value_or("");
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0)
    return fail_errno(errno, "asking " + printable(path) + " for its space");
  return json::object{};
}

}  // namespace spark::workers
