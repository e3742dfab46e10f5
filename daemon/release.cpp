#include "daemon/release.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "daemon/discovery/worker_actions.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/worker_actions.hpp"
#include "nvmetcp/registry.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using Actions = std::shared_ptr<volumes::VolumeActions>;

// Outlives whoever asked, who may have seen that it hangs.
asio::awaitable<void> unmount_into(Actions actions, std::filesystem::path mount,
                                   std::shared_ptr<std::optional<Result<>>> done) {
  const auto unmounted = co_await actions->unmount(std::move(mount), false);
  *done = unmounted ? Result<>() : Result<>(tl::unexpected<Error>(unmounted.error()));
}

class Release {
 public:
  Release(Actions actions, const config::Volume& volume, SharedLink& link, const Clock& clock,
          ReleasePatience patience)
      : actions_(std::move(actions)), volume_(volume), link_(link), clock_(clock), patience_(patience) {}

  asio::awaitable<std::string> go() {
    const bool is_mounted = look_at_mount();
    const bool answers = co_await does_answer(is_mounted);
    std::string said = "volume " + volume_.name + ": ";
    if (is_mounted && answers) {
      said += co_await unmount();
    } else if (is_mounted) {
      said += co_await cut_off();
    } else {
      said += "not mounted";
    }
    // Namespaces of one subsystem have one link: the last of them ends it, if none needs it any more.
    if (--link_.volumes == 0 && volume_.nvme && !link_.is_needed) said += co_await disconnect();
    co_return said;
  }

 private:
  Actions actions_;
  const config::Volume& volume_;
  SharedLink& link_;
  const Clock& clock_;
  ReleasePatience patience_;
  std::string device_;
  bool went_silent_ = false;

  bool look_at_mount() {
    const auto mount = actions_->mount_at(volume_.mount);
    if (!mount || !*mount) return false;
    if (volume_.nvme) device_ = (*mount)->source;
    return true;
  }

  std::vector<nvmetcp::Controller> controllers() {
    if (!volume_.nvme) return {};
    return actions_->controllers(volume_.nvme->subsystem).value_or(std::vector<nvmetcp::Controller>{});
  }

  asio::awaitable<bool> does_answer(bool is_mounted) {
    if (!is_mounted) co_return false;
    if (!has_live_link()) co_return false;
    const auto answer = co_await probe();
    co_return answer.has_value();
  }

  bool has_live_link() {
    if (!volume_.nvme) return true;
    const auto all = controllers();
    return std::ranges::any_of(all, [](const auto& controller) { return controller.is_live(); });
  }

  asio::awaitable<Result<volumes::ProbeAnswer>> probe() {
    volumes::ProbeRequest request{volume_.mount, device_, std::nullopt};
    auto answer = co_await actions_->probe(std::move(request));
    co_return answer;
  }

  asio::awaitable<std::string> unmount() {
    const auto unmounted = co_await unmount_patiently();
    if (went_silent_) co_return co_await cut_off();
    if (unmounted) co_return "unmounted" + co_await give_back();
    // Still in use: systemd ends its users and unmounts it after all units, and needs the link for that.
    link_.is_needed = true;
    co_return unmounted.error().what;
  }

  // Programs end while this waits: the machine's shutdown stops them at the same time.
  asio::awaitable<Result<>> unmount_patiently() {
    const SteadyTime end = clock_.steady() + patience_.users;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
      auto unmounted = co_await unmount_while_it_answers();
      if (unmounted) co_return Result<>{};
      if (unmounted.error().kind != Errc::Refused || clock_.steady() >= end)
        co_return tl::unexpected<Error>(unmounted.error());
      timer.expires_after(patience_.look_again);
      co_await timer.async_wait(kToken);
    }
  }

  // A target that goes silent only now is waited for in the kernel, and nothing calls the unmount back.
  asio::awaitable<Result<>> unmount_while_it_answers() {
    const auto executor = co_await asio::this_coro::executor;
    const auto done = std::make_shared<std::optional<Result<>>>();
    asio::co_spawn(executor, unmount_into(actions_, volume_.mount, done), asio::detached);
    asio::steady_timer timer(executor);
    unsigned silent_looks = 0;
    while (!*done && !went_silent_) {
      timer.expires_after(patience_.look_again);
      co_await timer.async_wait(kToken);
      if (*done) break;
      const bool is_silent = co_await has_gone_silent();
      silent_looks = is_silent ? silent_looks + 1 : 0;
      went_silent_ = silent_looks >= patience_.silent_looks;
    }
    if (*done) co_return **done;
    co_return fail(Errc::Unavailable, "its target went silent");
  }

  // A server has no link to look at: it is asked.
  asio::awaitable<bool> has_gone_silent() {
    if (volume_.nvme) co_return !has_live_link();
    const auto answer = co_await probe();
    co_return !answer && answer.error().kind == Errc::TimedOut;
  }

  // What waits for the server gets an error, so that programs end. A block device's does by the disconnect.
  asio::awaitable<std::string> cut_off() {
    std::string said = "its target does not answer: cut off, what was not written yet is lost";
    if (volume_.nvme) co_return said;
    const auto detached = co_await actions_->unmount(volume_.mount, true);
    if (!detached) said += ", " + detached.error().what;
    co_return said;
  }

  // Another host may write from now on.
  asio::awaitable<std::string> give_back() {
    const bool has_reservation = volume_.nvme && volume_.access == config::Access::Exclusive &&
                                 volume_.fence != config::Fence::None && volume_.fence != config::Fence::Mmp;
    if (!has_reservation) co_return "";
    volumes::ReservationRequest request{
        volumes::ReservationAct::Release, device_, {volume_.nvme->subsystem, volume_.nvme->nsid}};
    const auto given = co_await actions_->reservation(std::move(request));
    if (!given) co_return ", its reservation was not given back: " + given.error().what;
    co_return given->hold == nvmetcp::Hold::Unsupported ? "" : ", its reservation given back";
  }

  asio::awaitable<std::string> disconnect() {
    std::string said;
    for (const nvmetcp::Controller& controller : controllers()) {
      if (controller.transport != "tcp" || nvmetcp::is_anothers(controller)) continue;
      const auto gone =
          co_await actions_->disconnect(controller.name, controller.subsystem, nvmetcp::Users::CutOff);
      said += ", " + (gone ? controller.name + " disconnected" : gone.error().what);
    }
    co_return said;
  }
};

asio::awaitable<void> release_one(Actions actions, config::Volume volume, std::shared_ptr<SharedLink> link,
                                  const Clock& clock) {
  Release release(std::move(actions), volume, *link, clock, {});
  const std::string said = co_await release.go();
  log::info(said);
}

asio::awaitable<void> end_watch(std::shared_ptr<discovery::Actions> actions, nvmetcp::Controller controller) {
  const auto gone = co_await actions->disconnect(controller.name, controller.subsystem);
  log::info("discovery service at " + to_string(controller.portal) + ": " +
            (gone ? controller.name + " disconnected" : gone.error().what));
}

// The connections to discovery services that the daemon listens at.
std::vector<nvmetcp::Controller> watches(Sight& sight) {
  auto all = sight.controllers().value_or(std::vector<nvmetcp::Controller>{});
  std::erase_if(all, [](const nvmetcp::Controller& controller) {
    return !controller.is_discovery || controller.owner != nvmetcp::kOwner;
  });
  return all;
}

}  // namespace

asio::awaitable<std::string> release_volume(Actions actions, const config::Volume& volume, SharedLink& link,
                                            const Clock& clock, ReleasePatience patience) {
  Release release(std::move(actions), volume, link, clock, patience);
  co_return co_await release.go();
}

std::vector<config::Volume> not_in_config(const config::Config& config, Sight& sight) {
  std::set<std::string> ours, named;  // subsystems
  std::set<std::filesystem::path> mount_points;
  for (const auto& controller : sight.controllers().value_or(std::vector<nvmetcp::Controller>{})) {
    if (!controller.is_discovery && controller.owner == nvmetcp::kOwner) ours.insert(controller.subsystem);
  }
  for (const config::Volume& volume : config.volumes) {
    mount_points.insert(volume.mount);
    if (volume.nvme) named.insert(volume.nvme->subsystem);
  }
  std::vector<config::Volume> found;
  const auto add = [&](const std::string& subsystem, const std::filesystem::path& mount) {
    config::Volume volume;
    volume.name = mount.empty() ? printable(subsystem) : printable(mount.native());
    volume.nvme = config::NvmeSource{"", subsystem, 1, "", ""};
    volume.mount = mount;
    found.push_back(std::move(volume));
    named.insert(subsystem);
  };
  for (const mounts::Mount& mount : sight.mounts().value_or(std::vector<mounts::Mount>{})) {
    const auto subsystem = sight.subsystem_of_device(mount.device_number);
    if (subsystem && ours.contains(*subsystem) && mount_points.insert(mount.target).second)
      add(*subsystem, mount.target);
  }
  for (const std::string& subsystem : ours) {
    if (!named.contains(subsystem)) add(subsystem, {});
  }
  return found;
}

void release_all(const config::Config& config, const std::string& program,
                 const std::filesystem::path& state_dir, ReleaseReason reason) {
  asio::io_context context(1);
  const SystemClock clock;
  workers::Runner runner(context.get_executor(), program);
  Sight sight(clock);
  // A machine that goes down takes these with it, and need not wait for a target that is silent.
  const auto listening =
      reason == ReleaseReason::Shutdown ? std::vector<nvmetcp::Controller>{} : watches(sight);
  std::vector<config::Volume> volumes = config.volumes;
  const auto besides = not_in_config(config, sight);
  if (reason == ReleaseReason::Shutdown) volumes.insert(volumes.end(), besides.begin(), besides.end());
  std::size_t left = volumes.size() + listening.size();
  // Not when nothing is left to do: workers wait for questions, and some may be stuck in the kernel.
  const auto stop_after_the_last = [&](const std::exception_ptr&) {
    if (--left == 0) context.stop();
  };
  std::map<std::string, std::shared_ptr<SharedLink>>
      links;  // by subsystem; all of NFS together, which has none
  for (const config::Volume& volume : volumes) {
    auto& link = links[volume.nvme ? volume.nvme->subsystem : ""];
    if (!link) link = std::make_shared<SharedLink>();
    ++link->volumes;
  }
  for (const config::Volume& besides_it : besides) {
    const auto link = links.find(besides_it.nvme->subsystem);
    const bool stays = reason == ReleaseReason::Asked && !besides_it.mount.empty();
    if (stays && link != links.end()) link->second->is_needed = true;
  }
  for (const config::Volume& volume : volumes) {
    auto link = links[volume.nvme ? volume.nvme->subsystem : ""];
    auto actions = std::make_shared<volumes::WorkerActions>(runner, sight, volume.name, state_dir / "volumes",
                                                            [] { return false; });
    asio::co_spawn(context, release_one(std::move(actions), volume, std::move(link), clock),
                   stop_after_the_last);
  }
  for (const nvmetcp::Controller& controller : listening) {
    auto actions = std::make_shared<discovery::WorkerActions>(runner, sight, controller.name);
    asio::co_spawn(context, end_watch(std::move(actions), controller), stop_after_the_last);
  }
  if (left > 0) context.run();
}

}  // namespace spark
