// How a volume leaves this host, the same for `volumes down`, a reload and `spark-staged release`: if the
// mount at its mount point is its own, unmount it; then release the reservation; then disconnect.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark {
struct SharedLink;  // of `spark-staged release`
namespace volumes {
class LooseConnection;
}
std::optional<volumes::LooseConnection> loose_connection(const SharedLink& link,
                                                         const config::Volume& volume);
}  // namespace spark

namespace spark::volumes {

// Whether the connection is kept, and whether a mount of an NFS server that is gone is removed by force.
enum class OnDown { Disconnect, KeepConnection, Force };

struct GivenBack {
  bool gave_back = false;      // a reservation
  std::string still_reserved;  // a sentence: why it was not released; empty means no remark
};
struct Released : GivenBack {
  Change change = Change::Done;  // AlreadyThere: the volume was not mounted
  std::string foreign;           // a sentence: the other mount there, which was left alone
  std::string users;             // processes with open files on a detached mount; empty means none
};

// Refused, without a change: in use, another mount is on top, or its device is mounted elsewhere too. Only a
// dead mount is ever detached, or by Force one of an NFS server.
asio::awaitable<Result<Released>> release_mount(const Seams& seams, const config::Volume& volume,
                                                OnDown on_down = OnDown::Disconnect);

// Unavailable: another program has mounted it since it was unmounted; its device may be gone again.
Result<> check_has_left(const Seams& seams, const config::Volume& volume);

// The next step for a volume whose server or target does not answer.
std::string hint_of_force(const config::Volume& volume);

// Releases an exclusive volume's reservation, once nothing of it is mounted. If the target does not answer,
// it keeps the reservation for this host.
asio::awaitable<GivenBack> give_back_reservation(const Seams& seams, const config::Volume& volume);

// Refused: the volume's device is mounted already, or another program has it. The kernel has one file system
// in memory for all mounts of a device, so a new one would show the state that the older one had, whatever
// another host has written since.
Error mounted_before(const Seams& seams, const config::Volume& volume, const std::string& device);

// Refused: the volume's device is mounted, and only at another place, such as that of an earlier
// configuration.
Result<> check_not_elsewhere(const Seams& seams, const config::Volume& volume);

// Whether other writers are to be kept out; and whether by a reservation, if its namespace supports it.
bool wants_fence(const config::Volume& volume);
bool wants_reservation(const config::Volume& volume);

bool has_live_path(const Seams& seams, const config::Volume& volume);

// The UUID of the file system that is mounted: its device holds another one if the disk was exchanged below
// the mount. Empty: the kernel does not say, or does not answer.
asio::awaitable<std::string> mounted_filesystem(const Seams& seams, OwnMount mount);

// Why this host may not write any more: the device has another UUID than the mounted file system had.
std::string holds_another(const std::string& device, const std::string& uuid);
// The UUID of the volume's file system, as configured, or as pinned at its first mount; empty means none yet.
std::string expected_uuid(const Seams& seams, const config::Volume& volume);
// A person has given the mounted file system another UUID (`tune2fs -U`), as this host's daemon has seen; and
// the sentence about it.
bool is_renamed(const Seams& seams, const config::Volume& volume, const OwnMount& mount,
                const std::string& uuid);
std::string renamed(const Seams& seams, const config::Volume& volume, const std::string& uuid);
// Before a flush or an unmount of a writable mount: an error if its device holds another file system, which
// they would write to. If the kernel does not say which one is mounted, it is the expected one, unless the
// one on the disk is open. Refused: writing has been stopped, because the kernel says so, or the mount is cut
// off next.
asio::awaitable<Result<>> check_not_exchanged(const Seams& seams, const config::Volume& volume,
                                              OwnMount mount, std::string device, mounts::Superblock there,
                                              bool is_cut_off);

// Proof that nothing else needs a volume's connection. A disconnect takes it.
class LooseConnection {
 public:
  const std::string& subsystem() const { return subsystem_; }

 private:
  friend std::optional<LooseConnection> loose_connection(const Seams& seams, const config::Volume& volume);
  friend std::optional<LooseConnection> spark::loose_connection(const SharedLink& link,
                                                                const config::Volume& volume);
  explicit LooseConnection(std::string subsystem) : subsystem_(std::move(subsystem)) {}
  std::string subsystem_;
};
// None: another volume needs it, or another namespace of its subsystem on the same target is mounted, or that
// can't be read.
std::optional<LooseConnection> loose_connection(const Seams& seams, const config::Volume& volume);

// Disconnects every controller of the subsystem that this host created, or none if another program uses what
// they lead to and `cut_off` does not cover. Returns the names of the disconnected ones, and the first
// failure. `kept`: a sentence, and no failure: another namespace of the connection is in use, for example by
// LVM.
struct Disconnected {
  std::vector<std::string> controllers;
  Result<> outcome;
  std::string kept;
};
asio::awaitable<Disconnected> disconnect(const Seams& seams, const config::Volume& volume,
                                         LooseConnection connection, nvmetcp::CutOff cut_off);

}  // namespace spark::volumes
