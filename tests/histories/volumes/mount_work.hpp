// The worker that mounts a volume, as daemon/workers/verbs/mount_verbs.cpp and
// daemon/mounts/libmount_mounter.cpp do: turn by turn, so that a daemon or a link may go between any two of
// them.
#pragma once

#include "tests/histories/volumes/seams.hpp"

namespace spark::histories {

// Another host may claim an ext4 with multi-mount protection at the same moment: mounts/mmp_claim.hpp.
class MmpClaim {
 public:
  MmpClaim(Host& host, HeadPtr head) : host_(host), head_(std::move(head)) {}

  // A pause, or the result.
  Turn<void> turn();

 private:
  Host& host_;
  HeadPtr head_;
  bool is_begun_ = false, is_watching_ = false;
  std::uint32_t sequence_ = 0;
};

class MountWork {
 public:
  MountWork(Host& host, std::string volume, mounts::MountRequest request,
            volumes::FilesystemIdentity identity);

  Turn<volumes::Mounted> turn();

 private:
  enum class Stage { Replace, Check, Claim, Protect, Mount, Announce, Pin };
  using Done = Result<volumes::Mounted>;

  Result<> replace();
  Result<> check_place();
  Turn<volumes::Mounted> check();
  Turn<volumes::Mounted> claim();
  Turn<volumes::Mounted> protect();
  Turn<volumes::Mounted> mount();
  Turn<volumes::Mounted> announce();
  Turn<volumes::Mounted> pin();
  Error explain(int error_number) const;

  Host& host_;
  std::string volume_;
  mounts::MountRequest request_;
  volumes::FilesystemIdentity identity_;
  Stage stage_ = Stage::Replace;
  HeadPtr head_;
  std::optional<MmpClaim> claim_;
  std::string seen_uuid_;
  std::uint32_t seen_sequence_ = 0;
  int waits_ = 0;  // of multi-mount protection
  volumes::Mounted mounted_;
};

// What published.hpp's announce_writer() changes on the disk.
void announce_writer(FileSystem& fs);

// A mount as the daemon saw it; ID 0 means any of the device.
struct Seen {
  int id = 0;
  dev_t device = 0;
};
bool is_seen(const MountEntry& entry, const Seen& seen);
// As the workers check it before they change a mount.
Result<> check_still_there(Host& host, const volumes::OwnMount& mount);

// The last look of a worker before it mounts a file system otherwise (mount_verbs.cpp).
Turn<void> look_again(Host& host, const volumes::Remount& mount);

// The beginning of an unmount: everything but the flush. `closing`: what has to be flushed and closed yet.
Result<Change> start_unmount(Host& host, const std::string& target, mounts::Unmount how,
                             std::optional<Seen> seen, std::string& users, SuperPtr& closing);

}  // namespace spark::histories
