// A volume's device and the file system mounted from it, accessed by workers.
#pragma once

#include <optional>

#include "daemon/volumes/adapters/asker.hpp"
#include "daemon/volumes/adapters/worker_mounts.hpp"
#include "daemon/volumes/seams/device.hpp"
#include "daemon/workers/joined.hpp"
#include "daemon/workers/messages.hpp"
#include "nvmetcp/device/device_io.hpp"

namespace spark::volumes {

class WorkerDevice final : public Device {
 public:
  WorkerDevice(Asker& asker, const std::string& volume)
      : asker_(asker), mount_subject_("the mount of volume " + volume) {}

  bool has_stuck_worker() override { return asker_.is_stuck(asker_.subject()); }

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override {
    json::object request{{"device", device}};
    auto answer = co_await asker_.ask("superblock", std::move(request), kSuperblock);
    co_return workers::message_of<mounts::Superblock>(std::move(answer));
  }

  asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest wanted) override {
    json::object request{{"path", wanted.target.native()}, {"device", wanted.device}};
    if (const auto& keep = wanted.keep_reservation)
      request["keep_reservation"] = json::object{{"subsystem", keep->subsystem}, {"nsid", keep->nsid}};
    auto answer = co_await asker_.ask("probe", std::move(request), kProbe);
    if (!answer) co_return answer.take_error();
    ProbeAnswer probed;
    if (wanted.device.empty()) {
      probed.superblock.read_us = get_double(*answer, "us").value_or(0);
      probed.shut_down = get_bool(*answer, "shut_down").value_or(false);
      co_return probed;
    }
    auto superblock = from_message<mounts::Superblock>(*answer);
    if (!superblock) co_return superblock.take_error();
    probed.superblock = std::move(*superblock);
    if (get_object(*answer, "reservation") != nullptr) {
      auto holding = workers::member_of<nvmetcp::ReservationState>(*answer, "reservation");
      if (!holding) co_return holding.take_error();
      probed.holding = std::move(*holding);
    }
    co_return probed;
  }

  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                              mounts::MountNumbers seen) override {
    if (asker_.is_stuck(mount_subject_))
      co_return fail(Errc::Unavailable,
                     "a request to the file system on " + target.native() + " still waits");
    json::object request{{"target", target.native()}, {"mounted", to_json(seen)}};
    auto answer =
        co_await asker_.runner().ask(mount_subject_, "mounted-state", std::move(request), kMountedState);
    co_return workers::message_of<mounts::MountedState>(std::move(answer));
  }

  asio::awaitable<Result<>> flush(OwnMount mount) override {
    constexpr Duration kNoSecondOne = std::chrono::hours(24 * 365);
    if (!flushes_) flushes_.emplace(co_await asio::this_coro::executor, kNoSecondOne);
    json::object request = message_of(mount);
    std::string key = json::serialize(request);
    workers::Joined::Ask ask = [this, request = std::move(request)] {
      return asker_.act_patiently("flush", request);
    };
    const auto answer = co_await flushes_->answer(std::move(key), std::move(ask));
    co_return success_of(answer);
  }

  asio::awaitable<Result<>> stop_writing(OwnMount mount, std::string device) override {
    json::object request = message_of(mount);
    request["device"] = device;
    const auto answer = co_await asker_.act("stop-writing", std::move(request), kStopWriting);
    co_return success_of(answer);
  }

  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(ReservationRequest wanted) {
    static constexpr const char* kActs[] = {"look", "hold", "take", "release"};
    json::object request{{"act", kActs[static_cast<std::size_t>(wanted.act)]},
                         {"device", wanted.device},
                         {"subsystem", wanted.of.subsystem},
                         {"nsid", wanted.of.nsid}};
    auto answer = co_await asker_.act("reservation", std::move(request), kReservation);
    co_return workers::message_of<nvmetcp::ReservationState>(std::move(answer));
  }

  std::optional<std::uint64_t> completed_io(const std::string& device,
                                            const std::vector<std::string>& controllers) override {
    return nvmetcp::completed_io(SystemRoot{}, std::filesystem::path(device).filename(), controllers);
  }

 private:
  static constexpr Duration kSuperblock{10'000};
  static constexpr Duration kProbe{5'000};
  static constexpr Duration kMountedState{2'000};  // read from memory
  static constexpr Duration kStopWriting{20'000};
  static constexpr Duration kReservation{
      15'000};  // three or four commands, each answered at once by a healthy target

  Asker& asker_;
  // Separate from the device's subject, because its worker may wait for other programs' changes.
  std::string mount_subject_;
  std::optional<workers::Joined> flushes_;  // no second one starts while one hangs
};

}  // namespace spark::volumes
