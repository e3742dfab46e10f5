// Mounts in memory, with the behaviour of the real Mounter
// (tests/unit/daemon/mounts/mounter_contract_test.cpp tests both).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/table.hpp"

namespace spark::test {

class FakeMounter final : public mounts::Mounter {
 public:
  // Set by a test.
  std::map<std::string, dev_t> devices;                // existing block devices; NFS exports always exist
  std::set<std::filesystem::path> occupied;            // mount points of non-empty folders
  std::map<std::filesystem::path, std::string> users;  // of a busy mount
  std::optional<Error> next_error;                     // the next mount or unmount fails with it once
  std::function<void(const mounts::MountRequest&)> before_mount;  // to block or to count calls
  // Read by a test.
  std::vector<mounts::Mount> table;
  std::vector<mounts::MountRequest> requests;

  Result<Change> mount(const mounts::MountRequest& request) override {
    requests.push_back(request);
    if (before_mount) before_mount(request);
    if (auto error = take_error()) return fail(std::move(*error));
    const std::string doing = "mounting " + request.source + " at " + request.target.string();
    const bool nfs = request.type.starts_with("nfs");
    if (!nfs && !devices.contains(request.source)) {
      return fail(Errc::NotFound, doing + ": looking at " + request.source + ": No such file or directory");
    }
    const dev_t device = nfs ? 0 : devices.at(request.source);
    if (const mounts::Mount* there = mounts::mounted_at(table, request.target)) {
      const bool same = nfs ? there->source == request.source : there->device_number == device;
      if (same && mounts::is_read_only(*there) == request.read_only) return Change::AlreadyThere;
      return fail(Errc::Refused, doing + ": " + there->source + " is mounted there");
    }
    for (const mounts::Mount& other : table) {
      if (nfs || other.device_number != device || mounts::is_read_only(other) == request.read_only) continue;
      return fail(Errc::Refused, doing + ": the device is mounted at " + other.target.string() + " too");
    }
    if (occupied.contains(request.target)) return fail(Errc::Refused, doing + ": mount point is not empty");
    mounts::Mount mount;
    mount.source = request.source;
    mount.target = request.target;
    mount.type = request.type;
    mount.options = mount.super_options = request.read_only ? "ro" : "rw";
    mount.device_number = device;
    mount.id = ++last_id_;
    table.push_back(std::move(mount));
    return Change::Done;
  }

  Result<Change> unmount(const std::filesystem::path& target, mounts::Unmount how) override {
    if (auto error = take_error()) return fail(std::move(*error));
    const mounts::Mount* there = mounts::mounted_at(table, target);
    if (there == nullptr) return Change::AlreadyThere;
    const auto busy = users.find(target);
    if (busy != users.end() && how == mounts::Unmount::Plain) {
      return fail(Errc::Refused, "unmounting " + target.string() + ": it is in use by " + busy->second);
    }
    table.erase(table.begin() + (there - table.data()));
    return Change::Done;
  }

 private:
  std::optional<Error> take_error() { return std::exchange(next_error, std::nullopt); }
  int last_id_ = 100;
};

}  // namespace spark::test
