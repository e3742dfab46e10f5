// VolumeActions as it really is: workers touch, sysfs and mountinfo show.
#pragma once

#include <functional>

#include "daemon/sight.hpp"
#include "daemon/volumes/actions.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

class WorkerActions final : public VolumeActions {
 public:
  using TargetAt = std::function<std::string(const nvmetcp::Portal&)>;

  // `folder`: where the volume's file system identity, history and intent are kept, a folder of the state
  // folder. `shared`, `target_at`: see VolumeActions::subsystem_shared and target_at; empty: no target is
  // known.
  WorkerActions(workers::Runner& runner, Sight& sight, const std::string& volume,
                const std::filesystem::path& folder, std::function<bool()> shared, TargetAt target_at = {});

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                          std::string interface) override;
  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override;
  asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) override;
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                             nvmetcp::Users users) override;
  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override;
  asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request, FilesystemIdentity identity) override;
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) override;
  asio::awaitable<Result<>> pin(FilesystemIdentity identity) override;
  asio::awaitable<Result<Unmounted>> unmount(std::filesystem::path target, bool detach) override;
  asio::awaitable<Result<std::string>> users(std::filesystem::path target) override;
  asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) override;
  asio::awaitable<Result<nvmetcp::Holding>> reservation(ReservationRequest request) override;
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target) override;
  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override;
  asio::awaitable<Result<mounts::Closed>> publish(std::filesystem::path target, std::string device,
                                                  mounts::AfterPublish then, bool alone) override;
  asio::awaitable<Result<>> make_writable(std::filesystem::path target, std::string device,
                                          bool alone) override;
  asio::awaitable<Result<>> stop_writing(std::filesystem::path target, std::string device) override;
  asio::awaitable<Result<>> save_intent(Intent intent) override;
  asio::awaitable<void> save_history(json::object history) override;

  Result<nvmetcp::HostIdentity> host_identity() override;
  std::string node_name() override;
  nvmetcp::TargetAddresses& addresses() override { return addresses_; }
  Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) override;
  std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) override;
  Result<> check_paths_secured(const std::string& subsystem, const nvmetcp::ConnectOptions& options) override;
  Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) override;
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override;
  Result<std::string> subsystem_of_device(dev_t device) override;
  const Result<std::vector<mounts::Mount>>& mount_table() override;
  std::optional<FilesystemIdentity> pinned_identity() override { return pinned_; }
  Result<Intent> saved_intent() override;
  json::object saved_history() override;
  std::optional<std::uint64_t> completed_io(const std::string& device) override;
  bool has_stuck_worker() override { return runner_.abandoned().contains(subject_); }
  bool subsystem_shared() override { return shared_(); }
  std::string target_at(const nvmetcp::Portal& numeric) override {
    return target_at_ ? target_at_(numeric) : "";
  }

 private:
  asio::awaitable<Result<json::object>> ask(std::string verb, json::object request, Duration deadline);
  // The same of what changes sysfs or the mount table: what was seen of them before is old.
  asio::awaitable<Result<json::object>> act(std::string verb, json::object request, Duration deadline);
  // The same, together with other volumes that ask it; `subject` is whose fault it is if it fails.
  asio::awaitable<Result<json::object>> act_jointly(std::string subject, std::string verb,
                                                    json::object request, Duration deadline);

  workers::Runner& runner_;
  Sight& sight_;
  std::string subject_, mount_subject_;
  std::filesystem::path pin_file_, history_file_, intent_file_, guards_;
  std::function<bool()> shared_;
  TargetAt target_at_;
  nvmetcp::TargetAddresses addresses_;
  std::optional<FilesystemIdentity> pinned_;
};

}  // namespace spark::volumes
