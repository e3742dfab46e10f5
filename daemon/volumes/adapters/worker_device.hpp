// A volume's device and the file system mounted from it, accessed by workers.
#pragma once

#include <optional>

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/seams/device.hpp"
#include "daemon/workers/joined.hpp"

namespace spark::volumes {

class WorkerDevice final : public Device {
 public:
  WorkerDevice(Asker& asker, const std::string& volume)
      : asker_(asker), mount_subject_("the mount of volume " + volume) {}

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override;
  asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) override;
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                              mounts::MountNumbers seen) override;
  asio::awaitable<Result<>> flush(OwnMount mount) override;
  asio::awaitable<Result<>> stop_writing(OwnMount mount, std::string device) override;
  std::optional<std::uint64_t> completed_io(const std::string& device,
                                            const std::vector<std::string>& controllers) override;
  // See seams/reservations.hpp.
  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(ReservationRequest request);
  bool has_stuck_worker() override { return asker_.is_stuck(asker_.subject()); }

 private:
  Asker& asker_;
  // Separate from the device's subject, because its worker may wait for other programs' changes.
  std::string mount_subject_;
  std::optional<workers::Joined> flushes_;  // no second one starts while one hangs
};

}  // namespace spark::volumes
