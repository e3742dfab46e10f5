// The seams of one volume to its simulated host.
#pragma once

#include "tests/histories/volumes/host.hpp"

namespace spark::histories {

inline constexpr Duration kSystemCall{10};
inline constexpr Duration kLooksAgain{500};  // at a device that does not answer

class HostFabric final : public volumes::Fabric {
 public:
  HostFabric(Host& host, std::string volume) : host_(host), volume_(std::move(volume)) {}

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal,
                                                          std::string interface) override;
  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override;
  asio::awaitable<Result<>> set_timers(std::string controller, std::string subsystem,
                                       nvmetcp::ConnectOptions options) override;
  asio::awaitable<Result<>> rescan(std::string controller, std::string subsystem) override;
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string subsystem,
                                             nvmetcp::CutOff cut_off,
                                             std::vector<std::string> leaving) override;
  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override;

 private:
  Host& host_;
  std::string volume_;
};

class HostFabricView final : public volumes::FabricSnapshot {
 public:
  explicit HostFabricView(Host& host) : host_(host) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override;
  Result<> check_paths_secured(const std::string& subsystem, const nvmetcp::ConnectOptions& options) override;
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override;
  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override;

 private:
  Host& host_;
};

class HostStore final : public volumes::VolumeStore {
 public:
  HostStore(Host& host, std::string volume);

  asio::awaitable<Result<>> pin(volumes::FilesystemIdentity identity) override;
  Result<volumes::FilesystemIdentity> pinned_identity() override;
  asio::awaitable<Result<>> save_intent(volumes::Intent intent) override;
  Result<volumes::Intent> saved_intent() override;
  asio::awaitable<Result<>> save(volumes::Record kind, json::object record) override;
  json::object saved(volumes::Record kind) override;

  void note_pinned(volumes::FilesystemIdentity identity) { pinned_ = std::move(identity); }

 private:
  Host& host_;
  std::string volume_;
  std::optional<volumes::FilesystemIdentity> pinned_;  // as FileStore keeps it, until its file is gone
};

class HostMounts final : public volumes::Mounts {
 public:
  HostMounts(Host& host, HostStore& store, std::string volume)
      : host_(host), store_(store), volume_(std::move(volume)) {}

  asio::awaitable<Result<volumes::Mounted>> mount(mounts::MountRequest request,
                                                  volumes::FilesystemIdentity identity) override;
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) override;
  asio::awaitable<Result<std::string>> unmount(volumes::OwnMount mount, mounts::Unmount how) override;
  asio::awaitable<Result<std::string>> users(std::filesystem::path target) override;
  asio::awaitable<Result<mounts::Closed>> publish(volumes::Remount mount, mounts::AfterPublish then) override;
  asio::awaitable<Result<>> make_writable(volumes::Remount mount) override;
  const Result<std::vector<mounts::Mount>>& mount_table() override { return host_.mounts.table(); }

 private:
  Host& host_;
  HostStore& store_;
  std::string volume_;
};

class HostDevice final : public volumes::Device {
 public:
  HostDevice(Host& host, std::string volume) : host_(host), volume_(std::move(volume)) {}

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override;
  asio::awaitable<Result<volumes::ProbeAnswer>> probe(volumes::ProbeRequest request) override;
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                              mounts::MountNumbers seen) override;
  asio::awaitable<Result<>> flush(volumes::OwnMount mount) override;
  asio::awaitable<Result<>> stop_writing(volumes::OwnMount mount, std::string device) override;
  std::optional<std::uint64_t> completed_io(const std::string& device,
                                            const std::vector<std::string>& controllers) override;
  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(volumes::ReservationRequest request);
  bool has_stuck_worker() override { return host_.workers.is_stuck(volume_); }

 private:
  Host& host_;
  std::string volume_;
};

// The device's block device, if it is there and answers; Pause: it does not answer now.
std::variant<Pause, Result<HeadPtr>> answering(Host& host, const std::string& device);
// "python3 (pid 4711, open file)", and mounts below; as mounts::describe_users() does.
std::string users_of(Host& host, const MountEntry& entry);

}  // namespace spark::histories
