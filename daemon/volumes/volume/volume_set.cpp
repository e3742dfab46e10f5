#include "daemon/volumes/volume/volume_set.hpp"

#include <algorithm>
#include <utility>

#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/mounts/guard.hpp"

namespace spark::volumes {
namespace {

constexpr std::chrono::milliseconds kTogether{100};
constexpr Duration kUrgentProbe{50};  // a warm worker answers in a few milliseconds
constexpr Duration kRemoveGuards{30'000};

asio::awaitable<void> ask_to_remove_guards(workers::Runner& runner, json::object request) {
  const auto removed =
      co_await runner.ask("mount points", "remove-guards", std::move(request), kRemoveGuards);
  if (!removed) log::survived(removed.error());
}

// What was mounted or connected since an operator took it down belongs to other programs. Its record says so
// before its state does: at a start it is read first.
bool is_released(const Volume& volume) {
  const Status& status = volume.status();
  const bool is_recorded = status.taken_down && status.taken_down->is_released;
  return is_recorded || (status.state == State::Down && !volume.context().wanted_up);
}

config::InForce in_force_of(const Volume& volume) {
  const Status& status = volume.status();
  const auto& target = volume.target();
  return {volume.settings().name, config::to_json(volume.settings()),
          target ? config::to_json(*target) : json::object{}, status.filesystem_type, status.filesystem_uuid};
}

std::string why_unrecorded(Volume& volume) {
  const auto& intent = volume.requests().intent();
  const bool is_up = intent && intent->up;
  return std::string("that it ") + (is_up ? "is to be up" : "stays down") +
         " can't be recorded, as its status says";
}

}  // namespace

VolumeSet::VolumeSet(asio::any_io_executor executor, workers::Runner& runner, MakeSeams make_seams,
                     const Clock& clock, std::filesystem::path state_dir, Volume::OnChange on_change)
    : executor_(std::move(executor)),
      runner_(runner),
      clock_(clock),
      make_seams_(std::move(make_seams)),
      state_dir_(std::move(state_dir)),
      on_change_(std::move(on_change)),
      added_(executor_) {}

std::shared_ptr<Volume> VolumeSet::make(const config::Config& config, const config::Volume& settings,
                                        const std::vector<std::shared_ptr<Volume>>& made) {
  std::optional<config::Target> target;
  if (settings.nvme) target = config.targets.at(settings.nvme->target);
  auto seams = make_seams_(settings, target);
  seams.neighbours.subsystem_shared = [this, name = settings.name] {
    const auto self = find(name);
    if (!self) return true;  // a reload has removed it, while it still leaves the host
    return std::any_of(volumes_.begin(), volumes_.end(), [&](const auto& other) {
      return other != self && self->settings().nvme &&
             other->wants_subsystem(self->settings().nvme->subsystem) &&
             config::is_same_target(*self->target(), *other->target());
    });
  };
  seams.neighbours.target_at = [this](const nvmetcp::Portal& numeric) {
    const auto found = std::ranges::find_if(volumes_, [&](const auto& one) {
      const auto& target = one->target();
      return target && std::ranges::find(target->portals, numeric) != target->portals.end();
    });
    return found == volumes_.end() ? std::string() : (*found)->target()->name;
  };
  seams.neighbours.target_is_back = [this, name = target ? target->name : ""] {
    for (const auto& one : volumes_) {
      const Status& status = one->status();
      const bool waits = status.next_attempt && status.state != State::Refused;
      if (waits && one->target() && one->target()->name == name) one->requests().try_now();
    }
  };
  // A target that moves is found by the volume that looks first; the others have its connection, or will.
  const std::vector<std::shared_ptr<Volume>>* const known[] = {&volumes_, &made};
  for (const auto* all : known) {
    const auto knows = std::ranges::find_if(*all, [&](const auto& one) {
      const auto& its = one->target();
      return target && its && its->name == target->name && its->portals == target->portals;
    });
    if (knows != all->end()) seams.snapshot.addresses() = (*knows)->context().seams.snapshot.addresses();
  }
  Timings timings;
  // Attempts and probes are worker calls: about one per second in total, for any number of volumes. Urgent
  // probes, which detect another host's writes, have a share of their own.
  const Duration one_each = std::chrono::seconds(config.volumes.size());
  const Duration urgent_each = kUrgentProbe * config.volumes.size();
  timings.probe = std::max(timings.probe, wants_reservation(settings) ? urgent_each : one_each);
  timings.probe_reader = std::max(timings.probe_reader, urgent_each);
  timings.longest_retry = std::max(timings.longest_retry, one_each);
  return std::make_shared<Volume>(executor_, settings, std::move(target), std::move(seams), clock_, timings,
                                  on_change_);
}

void VolumeSet::start(const config::Config& config) {
  for (const config::Volume& settings : config.volumes) volumes_.push_back(make(config, settings, {}));
  for (const auto& volume : volumes_) volume->start();
  launch(executor_, "removal of old guards of mount points", remove_guards());
}

// For mount points that are no longer configured, including those of earlier runs of the daemon.
asio::awaitable<void> VolumeSet::remove_guards() {
  json::array keep;
  for (const auto& volume : volumes_) keep.emplace_back(volume->settings().mount.native());
  json::object request{{"records", (state_dir_ / mounts::kGuardRecords).native()}, {"keep", std::move(keep)}};
  return ask_to_remove_guards(runner_, std::move(request));
}

std::vector<config::InForce> VolumeSet::in_force() const {
  std::vector<config::InForce> all;
  for (const auto& volume : volumes_) all.push_back(in_force_of(*volume));
  return all;
}

asio::awaitable<std::vector<config::Step>> VolumeSet::plan(const config::Config& wanted) const {
  auto steps = config::plan_volumes(in_force(), wanted);
  for (config::Step& step : steps) {
    if (config::takes_mount_away(step.action)) step.refused = co_await why_it_stays(step.volume);
  }
  co_return steps;
}

asio::awaitable<std::string> VolumeSet::why_it_stays(std::string name) const {
  const auto volume = find(name);
  if (!volume || is_released(*volume)) co_return "";  // none: a reload removed it while others were asked
  const auto users = co_await volume->users();
  if (!users) co_return users.error().message();
  co_return users->empty() ? "" : "in use by " + *users;
}

asio::awaitable<std::vector<config::Step>> VolumeSet::apply(const config::Config& wanted) {
  auto steps = co_await plan(wanted);
  co_await take_down(steps);
  replace(wanted, steps);
  co_await remove_guards();
  co_await set_live(wanted, steps);
  for (const config::Step& step : steps) {
    const auto volume = find(step.volume);
    if (!volume) continue;
    volume->note_pending(step.refused.empty() ? ""
                                              : "the configuration has changed, and this is left to do: " +
                                                    std::string(to_string(step.action)) + " - " +
                                                    step.refused + "; reload again when that has ended");
  }
  co_return steps;
}

// All of them before any is started again: volumes may share a subsystem, and the last one disconnects it.
asio::awaitable<void> VolumeSet::take_down(std::vector<config::Step>& steps) {
  for (config::Step& step : steps) {
    if (!config::takes_mount_away(step.action) || !step.refused.empty()) continue;
    const auto volume = find(step.volume);
    if (is_released(*volume)) continue;
    // Otherwise its successor would follow an older one.
    if (co_await volume->requests().record_missed() != Duration::max()) {
      step.refused = why_unrecorded(*volume);
      continue;
    }
    const auto on_down = step.action == config::Action::Remount ? OnDown::KeepConnection : OnDown::Disconnect;
    const auto down = co_await volume->requests().ask_down(on_down);
    if (!down) step.refused = down.error().message();
  }
  // Each one's successor, now or later, reads its intent from the state folder.
  for (config::Step& step : steps) {
    if (!config::takes_mount_away(step.action) || !step.refused.empty()) continue;
    const auto volume = find(step.volume);
    if (co_await volume->requests().record_missed() == Duration::max()) continue;
    step.refused = why_unrecorded(*volume);
    const auto& intent = volume->requests().intent();
    if (intent && intent->up) volume->requests().ask_up();  // only this reload has taken it down
  }
}

// A volume taken down by an operator stays down: each volume reads that from the state folder.
void VolumeSet::replace(const config::Config& wanted, std::vector<config::Step>& steps) {
  std::vector<std::shared_ptr<Volume>> next, fresh;
  for (config::Step& step : steps) {
    const auto current = find(step.volume);
    const bool leaves = config::takes_mount_away(step.action);
    const bool is_replaced = step.action == config::Action::Add || leaves;
    const bool is_gone = leaves && is_released(*current) && !current->requests().is_recording();
    if (leaves && step.refused.empty() && !is_gone) step.refused = "it was asked up meanwhile";
    if (current && (!is_replaced || !step.refused.empty())) {
      next.push_back(current);
      continue;
    }
    const bool is_removed = step.action == config::Action::Remove;
    if (current)
      current->stop(is_removed ? "was removed from the configuration"
                               : "was replaced by a reload of the configuration");
    if (is_removed) continue;
    fresh.push_back(make(wanted, *config::find_volume(wanted, step.volume), fresh));
    next.push_back(fresh.back());
  }
  volumes_ = std::move(next);
  for (const auto& volume : fresh) volume->start();
}

asio::awaitable<void> VolumeSet::set_live(const config::Config& wanted, std::vector<config::Step>& steps) {
  for (config::Step& step : steps) {
    if (step.action != config::Action::SetLive) continue;
    // A volume without a UUID may be about to mount another file system than the one that was compared.
    const auto volume = find(step.volume);
    const auto now = config::plan_volumes({in_force_of(*volume)}, wanted);
    if (config::takes_mount_away(std::ranges::find(now, step.volume, &config::Step::volume)->action)) {
      step.refused = "its file system has changed meanwhile";
      continue;
    }
    const config::Volume& settings = *config::find_volume(wanted, step.volume);
    std::optional<config::Target> target;
    if (settings.nvme) target = wanted.targets.at(settings.nvme->target);
    const auto set = co_await volume->set_live(settings, std::move(target));
    if (!set) step.refused = set.error().message();
  }
}

void VolumeSet::stop() {
  added_.cancel();
  for (const auto& volume : volumes_) volume->stop("is no longer watched: spark-staged ends");
}

void VolumeSet::target_changed(const std::string& target) {
  for (const auto& volume : volumes_) {
    if (volume->target() && volume->target()->name == target) volume->requests().try_now();
  }
}

void VolumeSet::controller_changed(const std::string& controller) {
  for (const auto& volume : volumes_) volume->look_now(controller);
}

void VolumeSet::namespace_added() {
  if (std::exchange(is_look_due_, true)) return;
  added_.expires_after(kTogether);
  added_.then([this] {
    is_look_due_ = false;
    for (const auto& volume : volumes_) volume->namespace_added();
  });
}

std::shared_ptr<Volume> VolumeSet::find(const std::string& name) const {
  const auto found = std::find_if(volumes_.begin(), volumes_.end(),
                                  [&](const auto& volume) { return volume->settings().name == name; });
  return found == volumes_.end() ? nullptr : *found;
}

}  // namespace spark::volumes
