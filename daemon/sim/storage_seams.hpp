// The device, the mount point and the reservation of one volume of a simulated host.
#pragma once

#include "daemon/sim/world.hpp"
#include "daemon/volumes/seams/device.hpp"
#include "daemon/volumes/seams/mounts.hpp"
#include "daemon/volumes/seams/reservations.hpp"

namespace spark::sim {

namespace asio = boost::asio;

class SimulatedMounts final : public volumes::Mounts {
 public:
  // `store` receives the identities that a mount pins.
  SimulatedMounts(World& world, volumes::VolumeStore& store, const Clock& clock, std::string volume,
                  Duration pace)
      : world_(world), store_(store), clock_(clock), volume_(std::move(volume)), pace_(pace) {}

  asio::awaitable<Result<volumes::Mounted>> mount(mounts::MountRequest request,
                                                  volumes::FilesystemIdentity identity) override;
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path mount_point, bool is_in_use) override;
  asio::awaitable<Result<std::string>> unmount(volumes::OwnMount mount, mounts::Unmount how) override;
  asio::awaitable<Result<std::string>> users(std::filesystem::path target) override;
  asio::awaitable<Result<mounts::Closed>> publish(volumes::Remount mount, mounts::AfterPublish then) override;
  asio::awaitable<Result<>> make_writable(volumes::Remount mount) override;
  const Result<std::vector<mounts::Mount>>& mount_table() override;

 private:
  asio::awaitable<Result<>> pin_published(bool is_published, std::uint64_t stamp);

  World& world_;
  volumes::VolumeStore& store_;
  const Clock& clock_;
  std::string volume_;
  Duration pace_;
  Result<std::vector<mounts::Mount>> table_;  // as last read
};

class SimulatedDevice final : public volumes::Device {
 public:
  SimulatedDevice(World& world, std::string volume) : world_(world), volume_(std::move(volume)) {}

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override;
  asio::awaitable<Result<volumes::ProbeAnswer>> probe(volumes::ProbeRequest request) override;
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                              mounts::MountNumbers seen) override;
  asio::awaitable<Result<>> flush(volumes::OwnMount mount) override;
  asio::awaitable<Result<>> stop_writing(volumes::OwnMount mount, std::string device) override;
  std::optional<std::uint64_t> completed_io(const std::string& /*device*/,
                                            const std::vector<std::string>& /*controllers*/) override {
    return std::nullopt;
  }
  bool has_stuck_worker() override { return false; }
  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(volumes::ReservationRequest request);

 private:
  World& world_;
  std::string volume_;
};

}  // namespace spark::sim
