#include "daemon/service/release.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "daemon/discovery/worker_actions.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/adapters/worker_seams.hpp"
#include "daemon/volumes/place.hpp"
#include "daemon/volumes/release_step.hpp"
#include "daemon/workers/process_runner.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using volumes::Seams;

using Released = Result<volumes::Released>;

// These outlive their caller, which may have stopped waiting because they hang.
asio::awaitable<void> release_into(Seams seams, config::Volume volume,
                                   std::shared_ptr<std::optional<Released>> done) {
  *done = co_await volumes::release_mount(seams, volume);
}
asio::awaitable<void> flush_into(Seams seams, volumes::OwnMount mount,
                                 std::shared_ptr<std::optional<Result<>>> done) {
  *done = co_await seams.device.flush(std::move(mount));
}

// What was mounted or connected since belongs to other programs.
bool is_down(const Seams& seams) {
  const auto intent = seams.store.saved_intent();
  return intent && !intent->up && intent->is_released;
}

class Release {
 public:
  Release(Seams seams, const config::Volume& volume, SharedLink& link, const Clock& clock,
          ReleaseTimings timings, ReleaseReason reason)
      : seams_(std::move(seams)),
        volume_(volume),
        link_(link),
        clock_(clock),
        timings_(timings),
        reason_(reason) {}

  asio::awaitable<std::string> go() {
    std::string said = "volume " + volume_.name + ": ";
    if (reason_ == ReleaseReason::Asked && is_down(seams_)) {
      said += "is down, and left alone";
      const auto place = volumes::look_at_place(seams_, volume_);
      link_.is_needed = link_.is_needed || place.own || place.place == volumes::Place::Unknown;
    } else {
      link_.is_used = true;
      said += co_await unmount();
    }
    // Namespaces of one subsystem share one connection: the last of them ends it, if it is no longer needed.
    --link_.volumes;
    const auto loose = volume_.nvme && link_.is_used ? loose_connection(link_, volume_) : std::nullopt;
    if (loose) said += co_await disconnect(*loose);
    co_return said;
  }

  // Something could not be left as it should be, or unwritten data may be lost.
  bool has_failed() const { return has_failed_; }

 private:
  Seams seams_;
  const config::Volume& volume_;
  SharedLink& link_;
  const Clock& clock_;
  ReleaseTimings timings_;
  ReleaseReason reason_;
  std::string device_;
  bool went_silent_ = false, has_failed_ = false;

  // A dead device's mount does not block.
  asio::awaitable<std::string> unmount() {
    const auto standing = volumes::look_at_place(seams_, volume_);
    const bool is_former = standing.place == volumes::Place::Former;  // it waits for an address that is left
    if (standing.place != volumes::Place::Ours && !is_former) {
      const auto released = co_await volumes::release_mount(seams_, volume_);
      co_return describe(released);
    }
    if (volume_.nvme) device_ = standing.top->source;
    bool answers = !is_former && has_live_link();
    if (answers) {
      const bool is_writable = volume_.nvme && !mounts::is_read_only(*standing.top);
      const auto answer = co_await probe(is_writable);
      answers = answer.has_value();
      if (answers && is_writable && is_taken(*standing.own, *answer)) {
        const auto stopped = co_await seams_.device.stop_writing(*standing.own, device_);
        co_return leave_exchanged(
            *standing.own,
            {stopped ? Errc::Refused : Errc::Unavailable,
             "another host has taken it over, and its unmount would write to " + printable(device_),
             stopped ? "`sudo nvme disconnect -n " + printable(volume_.nvme->subsystem) +
                           "` ends the mount without writing; then release again"
                     : "try again"});
      }
      if (answers && is_writable) {
        const auto same = co_await volumes::check_not_exchanged(
            seams_, volume_, *standing.own, device_, answer->superblock, reason_ == ReleaseReason::Shutdown);
        if (!same) co_return leave_exchanged(*standing.own, same.error());
      }
    }
    if (!answers) co_return co_await leave_silent();
    // First: the kernel takes a mount out of the table before it flushes, and its unmount has a short
    // deadline.
    Result<> flushed;
    if (!is_former && !mounts::is_read_only(*standing.top)) flushed = co_await flush(*standing.own);
    if (went_silent_) co_return co_await leave_silent();
    const auto released = co_await unmount_patiently();
    if (went_silent_) co_return co_await leave_silent();
    // The kernel may give a later mount the same ID. After a boot the record is not used.
    if (released && volume_.nvme && reason_ == ReleaseReason::Asked)
      (void)co_await seams_.store.save(volumes::Record::Held, {});
    has_failed_ = has_failed_ || !flushed;
    co_return describe(released) + (flushed ? "" : "; unwritten data may be lost: " + flushed.error().what);
  }

  // A volume that stays mounted needs the connection: systemd unmounts it once its users have ended.
  std::string describe(const Released& released) {
    if (!released) {
      link_.is_needed = has_failed_ = true;
      return released.error().message();
    }
    if (released->change == Change::AlreadyThere)
      return released->foreign.empty() ? "not mounted" : released->foreign;
    return std::string("unmounted") + (released->gave_back ? ", its reservation given back" : "") +
           (released->still_reserved.empty() ? "" : ", " + released->still_reserved);
  }

  bool has_live_link() { return !volume_.nvme || volumes::has_live_path(seams_, volume_); }

  asio::awaitable<Result<volumes::ProbeAnswer>> probe(bool asks_for_holder = false) {
    volumes::ProbeRequest request{volume_.mount, device_, std::nullopt};
    if (asks_for_holder && volumes::wants_reservation(volume_))
      request.keep_reservation = {volume_.nvme->subsystem, volume_.nvme->nsid};
    auto answer = co_await seams_.device.probe(std::move(request));
    co_return answer;
  }

  // Also by a host that has given the reservation back since. Who mounted it by hand never had it.
  bool is_taken(const volumes::OwnMount& mount, const volumes::ProbeAnswer& answer) {
    if (!answer.holding) return false;
    const auto held = get_string(seams_.store.saved(volumes::Record::Held), "mount");
    const bool is_lost =
        answer.holding->hold == nvmetcp::Hold::Free && !answer.holding->restarted && held == mount.text();
    return is_lost || answer.holding->hold == nvmetcp::Hold::Theirs;
  }

  // Programs end during this wait: the machine's shutdown stops them at the same time.
  asio::awaitable<Released> unmount_patiently() {
    const SteadyTime end = clock_.steady() + timings_.users;
    Timer timer(co_await asio::this_coro::executor);
    for (;;) {
      auto released = co_await unmount_while_it_answers();
      const bool is_in_use = !released && released.error().kind == Errc::Refused;
      if (!is_in_use || clock_.steady() >= end) co_return released;
      timer.expires_after(timings_.look_again);
      co_await timer.wait();
    }
  }

  asio::awaitable<Released> unmount_while_it_answers() {
    const auto done = std::make_shared<std::optional<Released>>();
    const auto executor = co_await asio::this_coro::executor;
    launch(executor, "unmount of volume " + volume_.name, release_into(seams_, volume_, done));
    co_return co_await while_it_answers(done);
  }

  asio::awaitable<Result<>> flush(volumes::OwnMount mount) {
    const auto done = std::make_shared<std::optional<Result<>>>();
    const auto executor = co_await asio::this_coro::executor;
    launch(executor, "flush of volume " + volume_.name, flush_into(seams_, std::move(mount), done));
    const bool is_asked = reason_ == ReleaseReason::Asked;
    const Duration silence = is_asked ? timings_.flush_silence : timings_.shutdown_silence;
    co_return co_await while_it_answers(done, volume_.nvme ? Duration(0) : silence);
  }

  // If a target goes silent meanwhile, the kernel waits for it, and what waits can't be cancelled.
  template <typename Outcome>
  asio::awaitable<Outcome> while_it_answers(std::shared_ptr<std::optional<Outcome>> done,
                                            Duration silence = Duration(0)) {
    Timer timer(co_await asio::this_coro::executor);
    unsigned silent_looks = 0;
    SteadyTime answered_at = clock_.steady();
    while (!*done && !went_silent_) {
      timer.expires_after(timings_.look_again);
      co_await timer.wait();
      if (*done) break;
      const bool is_silent = co_await has_gone_silent();
      silent_looks = is_silent ? silent_looks + 1 : 0;
      if (!is_silent) answered_at = clock_.steady();
      went_silent_ = silent_looks >= timings_.silent_looks && clock_.steady() - answered_at >= silence;
    }
    if (*done) co_return **done;
    co_return fail(Errc::Unavailable, "its target went silent");
  }

  // An NFS server has no connection state to check, so it is probed.
  asio::awaitable<bool> has_gone_silent() {
    if (volume_.nvme) co_return !has_live_link();
    const auto answer = co_await probe();
    co_return !answer && answer.error().kind == Errc::TimedOut;
  }

  // Once its device is disconnected, an unmount writes nothing. Newer kernels flush a file system whose
  // device is removed in good order, hence only if its writing has been stopped.
  std::string leave_exchanged(const volumes::OwnMount& mount, const Error& stays) {
    const bool is_stopped = stays.kind == Errc::Refused;
    const bool is_given_up = reason_ == ReleaseReason::Shutdown && is_stopped;
    if (is_given_up) link_.given_up.devices.push_back(mount.device_number());
    if (!is_given_up) link_.is_needed = true;
    return is_given_up ? stays.what + ": its writing was stopped" : stays.message();
  }

  // A shutdown can't wait for a silent target: waiting requests must fail, so that programs end. For a block
  // device the disconnect does that. Otherwise the decision is left to an administrator.
  asio::awaitable<std::string> leave_silent() {
    has_failed_ = true;
    if (reason_ == ReleaseReason::Asked) {
      link_.is_needed = true;
      co_return "its target does not answer: left unchanged; `" +
          (volume_.nvme ? "nvme disconnect -n " + printable(volume_.nvme->subsystem)
                        : "umount -f -l " + printable(volume_.mount.native())) +
          "` abandons it, and unwritten data is lost";
    }
    link_.given_up.is_all = true;
    std::string said = "its target does not answer: released by force, unwritten data is lost";
    if (volume_.nvme) co_return said;
    const auto own = volumes::look_at_place(seams_, volume_).own;
    if (!own) co_return said;
    const auto detached = co_await seams_.mounts.unmount(*own, mounts::Unmount::Detach);
    if (!detached) said += ", " + detached.error().what;
    co_return said;
  }

  // By force only from a silent target, or from an exchanged disk: the data can't be saved, and its users
  // would delay the shutdown. The users of other disks of a target that answers keep them.
  asio::awaitable<std::string> disconnect(volumes::LooseConnection connection) {
    nvmetcp::CutOff cut_off;
    if (reason_ == ReleaseReason::Shutdown) {
      cut_off = link_.given_up;
      cut_off.is_all = cut_off.is_all || !has_live_link();
    }
    const auto done =
        co_await volumes::disconnect(seams_, volume_, std::move(connection), std::move(cut_off));
    has_failed_ = has_failed_ || !done.outcome;
    std::string said;
    for (const std::string& controller : done.controllers) said += ", " + controller + " disconnected";
    if (!done.kept.empty()) said += ", its connection stays: " + done.kept;
    co_return said + (done.outcome ? "" : ", " + done.outcome.error().message());
  }
};

asio::awaitable<void> release_one(Seams seams, config::Volume volume, std::shared_ptr<SharedLink> link,
                                  const Clock& clock, ReleaseReason reason, bool& all_gone) {
  const ReleaseTimings timings;
  const auto outcome = co_await release_volume(std::move(seams), volume, *link, clock, timings, reason);
  log::info(outcome.said);
  all_gone = all_gone && outcome.is_done;
}

asio::awaitable<void> end_watch(std::shared_ptr<discovery::Actions> actions, nvmetcp::Controller controller) {
  const auto gone = co_await actions->disconnect(controller.name, controller.subsystem);
  log::info("discovery service at " + to_string(controller.portal) + ": " +
            (gone ? controller.name + " disconnected" : gone.error().what));
}

}  // namespace

asio::awaitable<ReleaseOutcome> release_volume(Seams seams, const config::Volume& volume, SharedLink& link,
                                               const Clock& clock, ReleaseTimings timings,
                                               ReleaseReason reason) {
  Release release(seams, volume, link, clock, timings, reason);
  ReleaseOutcome outcome;
  outcome.said = co_await release.go();
  const auto left = volumes::look_at_place(seams, volume);
  const bool stays = left.own || left.place == volumes::Place::Unknown;
  const bool may_stay = reason == ReleaseReason::Asked && is_down(seams);
  outcome.is_done = !release.has_failed() && (!stays || may_stay);
  co_return outcome;
}

bool release_all(const config::Config& config, const std::string& program,
                 const std::filesystem::path& state_dir, ReleaseReason reason) {
  asio::io_context context(1);
  const SystemClock clock;
  workers::ProcessRunner runner(context.get_executor(), program);
  HostSnapshot snapshot(clock);
  // A shutdown ends these connections anyway, and need not wait for a silent target.
  const auto listening =
      reason == ReleaseReason::Shutdown ? std::vector<nvmetcp::Controller>{} : watches(snapshot);
  std::vector<config::Volume> volumes = config.volumes;
  const auto besides = not_in_config(config, snapshot);
  if (reason == ReleaseReason::Shutdown) volumes.insert(volumes.end(), besides.begin(), besides.end());
  std::size_t left = volumes.size() + listening.size();
  bool all_gone = true;
  // Stops explicitly: idle workers wait for calls, and some may be stuck in the kernel, so it would not end.
  const auto stop_after_the_last = [&](const std::exception_ptr& failure) {
    if (failure) log::error("releasing a volume: " + in_words(failure) + "; continuing with the others");
    if (failure) all_gone = false;
    if (--left == 0) context.stop();
  };
  const auto links = links_of(config, volumes);
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const config::Volume& volume = volumes[i];
    const bool stays = volume.nvme && std::ranges::any_of(besides, [&](const config::Volume& one) {
                         return !one.mount.empty() && one.nvme->subsystem == volume.nvme->subsystem;
                       });
    if (stays && reason == ReleaseReason::Asked) links[i]->is_needed = true;
    // The others are named after a path, and have no records.
    const std::string name = i < config.volumes.size() ? volume.name : "." + std::to_string(i);
    auto seams = volumes::worker_seams(runner, snapshot, name, state_dir / "volumes");
    know_controllers(seams, config, volume);
    asio::co_spawn(context, release_one(std::move(seams), volume, links[i], clock, reason, all_gone),
                   stop_after_the_last);
  }
  for (const nvmetcp::Controller& controller : listening) {
    auto actions = std::make_shared<discovery::WorkerActions>(runner, snapshot, controller.name);
    asio::co_spawn(context, end_watch(std::move(actions), controller), stop_after_the_last);
  }
  if (left > 0) context.run();
  return all_gone;
}

}  // namespace spark
