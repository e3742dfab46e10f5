// What a volume can do and see. The seam between thinking (volume.cpp) and touching (workers): a fake fabric
// in unit tests, workers and sysfs in the daemon.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/publish.hpp"
#include "daemon/mounts/table.hpp"
#include "daemon/volumes/intent.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/device/smart.hpp"
#include "nvmetcp/reservations/reservation_hold.hpp"
#include "nvmetcp/sysfs/target_addresses.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

// The file system that a volume has to be: given in the config, or pinned at its first mount.
struct FilesystemIdentity {
  std::string type, uuid;     // empty: not known yet
  Bytes bytes = 0;            // of the file system; 0: not known
  std::string namespace_id;   // its UUID, NGUID or EUI-64; empty: the target gives none
  std::uint64_t stamp = 0;    // of the superblock that was mounted; 0: not known
  bool is_published = false;  // an exclusive volume's: it is read-only until a person wants it writable again
};

// Whose it is has to be said: a device's name may be another volume's by the time that it is asked.
struct NamespaceOf {
  std::string subsystem;
  std::uint32_t nsid = 0;
};

struct ProbeRequest {
  std::filesystem::path target;
  std::string device;                             // empty for NFS
  std::optional<NamespaceOf> keep_reservation{};  // an exclusive volume's
};

struct ProbeAnswer {
  double us = 0;           // a direct read of the superblock, or a question to the NFS server
  std::string uuid;        // of the file system on the device
  bool shut_down = false;  // NFS: the mount gives nothing but errors, although its server answers
  bool being_written = false;
  std::uint64_t stamp = 0;                    // of the superblock; 0: none
  std::string mmp_node{};                     // who has it open for writing, with multi-mount protection
  std::optional<nvmetcp::Holding> holding{};  // if it was asked for
};

// What is done with a namespace's reservation: nvmetcp/reservations/reservation_hold.hpp.
enum class ReservationAct { Look, Hold, Take, Release };
struct ReservationRequest {
  ReservationAct act = ReservationAct::Look;
  std::string device;
  NamespaceOf of;
};

struct Unmounted {
  Change change = Change::Done;
  std::string users;  // who still has files of a detached mount open; empty: nobody
};

struct Mounted {
  Change change = Change::Done;
  std::string users;  // the same, of the dead mount that it replaced
};

class VolumeActions {
 public:
  virtual ~VolumeActions() = default;

  // These touch the fabric, devices and mount points; each runs in a worker and ends by its deadline.
  virtual asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                                  std::string interface) = 0;
  virtual asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                               nvmetcp::ConnectOptions options) = 0;
  // The numeric addresses behind a portal, as its name leads to them now.
  virtual asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) = 0;
  // On the same controller, proven by reading back.
  virtual asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                               nvmetcp::ConnectOptions options) = 0;
  // Has the kernel look for its namespaces again; they appear a moment later.
  virtual asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) = 0;
  virtual asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                                     nvmetcp::Users users) = 0;
  virtual asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) = 0;
  // Pins `identity` (empty uuid: nothing to pin) once the mount has succeeded.
  virtual asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request,
                                                 FilesystemIdentity identity) = 0;
  // No process can write to the mount point while nothing is mounted there: mounts/guard.hpp. `is_in_use`:
  // what is mounted there is the volume.
  virtual asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) = 0;
  // The same of what was mounted before.
  virtual asio::awaitable<Result<>> pin(FilesystemIdentity identity) = 0;
  virtual asio::awaitable<Result<Unmounted>> unmount(std::filesystem::path target, bool detach) = 0;
  // Who has files of the mount open, in words; empty: nobody. Asks /proc, never the mount.
  virtual asio::awaitable<Result<std::string>> users(std::filesystem::path target) = 0;
  // The device answers, or the NFS server. Not while the link is down: it would hang.
  virtual asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) = 0;
  // Of the file system in the kernel, whose worker may wait for other programs' changes. TimedOut, or
  // Unavailable as long as such a worker is left: it does, and is alive.
  virtual asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target) = 0;
  // What the target says of its drives, asked of a controller that is live.
  virtual asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) = 0;
  // Release answers Free, or whose it is now.
  virtual asio::awaitable<Result<nvmetcp::Holding>> reservation(ReservationRequest request) = 0;
  // See mounts/publish.hpp. ReadOnly is pinned, and lasts until make_writable; of no device, where nothing is
  // mounted, that ends the pin alone. `alone`: without a reservation.
  virtual asio::awaitable<Result<mounts::Closed>> publish(std::filesystem::path target, std::string device,
                                                          mounts::AfterPublish then, bool alone) = 0;
  virtual asio::awaitable<Result<>> make_writable(std::filesystem::path target, std::string device,
                                                  bool alone) = 0;
  // The mounted file system writes nothing more to `device`, not even what it has not flushed.
  virtual asio::awaitable<Result<>> stop_writing(std::filesystem::path target, std::string device) = 0;
  // Durable when it returns: what saved_intent() gives after a restart.
  virtual asio::awaitable<Result<>> save_intent(Intent intent) = 0;
  // What saved_history() gives after a restart.
  virtual asio::awaitable<void> save_history(json::object history) = 0;

  // These never block.
  virtual Result<nvmetcp::HostIdentity> host_identity() = 0;
  // What multi-mount protection calls this host.
  virtual std::string node_name() = 0;
  // Which addresses are the volume's target's: as the volume has found out.
  virtual nvmetcp::TargetAddresses& addresses() = 0;
  // Those of the subsystem that this host made, at an address of the target; and at another one.
  virtual Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) = 0;
  virtual std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) = 0;
  // Each path of the subsystem has the keys and the encryption that are asked for; see
  // nvmetcp/security/path_security.hpp.
  virtual Result<> check_paths_secured(const std::string& subsystem,
                                       const nvmetcp::ConnectOptions& options) = 0;
  // Below those of controllers().
  virtual Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) = 0;
  // Below these, which are all of one subsystem.
  virtual Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                          std::uint32_t nsid) = 0;
  virtual Result<std::string> subsystem_of_device(dev_t device) = 0;
  // All that is mounted on this host; valid until the next call of any kind.
  virtual const Result<std::vector<mounts::Mount>>& mount_table() = 0;
  // The topmost mount at exactly `target`; none: nothing is mounted there.
  Result<std::optional<mounts::Mount>> mount_at(const std::filesystem::path& target) {
    const auto& table = mount_table();
    if (!table) return table.take_error();
    const mounts::Mount* mount = mounts::mounted_at(*table, target);
    return mount == nullptr ? std::nullopt : std::optional<mounts::Mount>(*mount);
  }
  virtual std::optional<FilesystemIdentity> pinned_identity() = 0;
  // Up if none was ever saved; an error if what was saved can't be read or understood.
  virtual Result<Intent> saved_intent() = 0;
  virtual json::object saved_history() = 0;
  // How many requests to the device have ended, whoever sent them; no value: not known.
  virtual std::optional<std::uint64_t> completed_io(const std::string& device) = 0;
  // A worker that asked this volume's device was abandoned and still waits in the kernel.
  virtual bool has_stuck_worker() = 0;
  // Another volume of ours that is up uses the same subsystem of the same target: its controllers stay.
  virtual bool subsystem_shared() = 0;
  // The target of the configuration that has this address; empty: none.
  virtual std::string target_at(const nvmetcp::Portal& numeric) = 0;
};

}  // namespace spark::volumes
