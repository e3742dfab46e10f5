#include "daemon/volumes/outages.hpp"

#include <utility>

#include "daemon/launch.hpp"
#include "daemon/log.hpp"

namespace spark::volumes {

void Outages::begin(const std::string& reason) {
  if (!volume_.attempts.was_ready || volume_.status.history.is_out()) return;
  volume_.status.warn(Warning::LeftBehind, "");
  volume_.status.history.outage_begins(volume_.clock.wall(), reason);
  remember();
}

void Outages::end() {
  Attempts& attempts = volume_.attempts;
  if (volume_.status.history.is_out()) {
    const Healer healer = attempts.healed_by_us ? Healer::Us : Healer::Kernel;
    volume_.status.history.outage_ends(volume_.clock.wall(), healer);
    remember();
  }
  const std::string left_behind = std::exchange(attempts, {.was_ready = true}).left_behind;
  if (left_behind.empty()) return;
  volume_.status.warn(Warning::LeftBehind,
                      "at " + rfc3339(volume_.clock.wall()) +
                          " files of the mount that was lost were still open, and give errors: " +
                          left_behind + "; those programs have to open them again");
}

void Outages::end_unhealed() {
  volume_.status.history.outage_ends(volume_.clock.wall(), std::nullopt);
  remember();
}

// Saved in the background, one at a time, so that the latest state remains.
void Outages::remember() {
  is_unsaved_ = true;
  if (is_saving_) return;
  launch(volume_.executor, "history of volume " + volume_.settings.name, save(volume_.keep_alive()));
}

asio::awaitable<void> Outages::save(std::shared_ptr<void> /*volume*/) {
  is_saving_ = true;
  while (is_unsaved_) {
    is_unsaved_ = false;
    auto history = volume_.status.history.to_json();
    const auto saved = co_await volume_.seams.store.save(Record::History, std::move(history));
    if (!saved) log::survived(saved.error());
  }
  is_saving_ = false;
}

}  // namespace spark::volumes
