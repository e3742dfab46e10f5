#include "daemon/volumes/volume_set.hpp"

#include <algorithm>

#include "daemon/config/parse.hpp"

#include "daemon/volumes/worker_actions.hpp"

namespace spark::volumes {

VolumeSet::VolumeSet(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
                     std::filesystem::path state_dir, Volume::OnChange on_change)
    : executor_(std::move(executor)),
      runner_(runner),
      clock_(clock),
      sight_(clock),
      state_dir_(std::move(state_dir)),
      on_change_(std::move(on_change)) {}

std::shared_ptr<Volume> VolumeSet::make(const config::Config& config, const config::Volume& settings) {
  std::optional<config::Target> target;
  if (settings.nvme) target = config.targets.at(settings.nvme->target);
  const auto shared = [this, name = settings.name] {
    const auto self = find(name);
    return std::any_of(volumes_.begin(), volumes_.end(), [&](const auto& other) {
      return other != self && self->settings().nvme &&
             other->wants_subsystem(self->settings().nvme->subsystem);
    });
  };
  auto actions =
      std::make_unique<WorkerActions>(runner_, sight_, settings.name, state_dir_ / "volumes", shared);
  Pace pace;
  // Probes and attempts are processes: however many volumes there are, about one a second.
  const Duration one_each = std::chrono::seconds(config.volumes.size());
  pace.probe = std::max(pace.probe, one_each);
  pace.longest_retry = std::max(pace.longest_retry, one_each);
  return std::make_shared<Volume>(executor_, settings, std::move(target), std::move(actions), clock_, pace,
                                  on_change_);
}

std::vector<std::string> VolumeSet::apply(const config::Config& config) {
  std::vector<std::string> changes;
  std::vector<std::shared_ptr<Volume>> next;
  std::vector<std::shared_ptr<Volume>> fresh;
  for (const config::Volume& settings : config.volumes) {
    const auto current = find(settings.name);
    const bool same_target =
        current && (!settings.nvme || current->target() == config.targets.at(settings.nvme->target));
    if (current && same_target && current->settings() == settings) {
      next.push_back(current);
      continue;
    }
    if (current) current->stop();
    next.push_back(make(config, settings));
    fresh.push_back(next.back());
    changes.push_back((current ? "changed volume " : "new volume ") + settings.name);
  }
  for (const auto& volume : volumes_) {
    if (config::find_volume(config, volume->settings().name) != nullptr) continue;
    volume->stop();
    changes.push_back("volume " + volume->settings().name +
                      " is no longer managed; what is mounted stays mounted");
  }
  volumes_ = std::move(next);
  for (const auto& volume : fresh) volume->start();
  return changes;
}

void VolumeSet::stop() {
  for (const auto& volume : volumes_) volume->stop();
}

std::shared_ptr<Volume> VolumeSet::find(const std::string& name) const {
  const auto found = std::find_if(volumes_.begin(), volumes_.end(),
                                  [&](const auto& volume) { return volume->settings().name == name; });
  return found == volumes_.end() ? nullptr : *found;
}

}  // namespace spark::volumes
