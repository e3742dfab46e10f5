#include "tests/histories/copies/world/simulated_daemon.hpp"

#include "daemon/launch.hpp"
#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/worker/simulated_system.hpp"

namespace spark::histories::copies {

SimulatedDaemon::SimulatedDaemon(Scene& scene)
    : scene_(scene),
      context_(std::make_unique<boost::asio::io_context>(1)),
      runner_(context_->get_executor(), scene.time, scene.fate),
      jobs_(context_->get_executor(), scene.time) {
  simulated().daemon = process_.pid();
  scene_.time.attach(*context_);
  datasets::Timings timings;
  timings.upkeep *= 2;  // each look of an idle daemon is a worker: a third of them all
  datasets::Context parts{context_->get_executor(),
                          runner_,
                          scene_.time,
                          places::kState,
                          [this]() -> const config::Config& { return scene_.config; },
                          [this](const config::Dataset& dataset) { return find_source(dataset); },
                          [](const config::Dataset& /*dataset*/) { return false; },
                          timings};
  datasets_.emplace(std::move(parts), jobs_);
  launch(context_->get_executor(), "datasets", datasets_->start());
}

SimulatedDaemon::~SimulatedDaemon() {
  scene_.time.detach(*context_);
}

// As find_source() of daemon/service does with a mount table.
Result<datasets::SourcePlace> SimulatedDaemon::find_source(const config::Dataset& dataset) {
  datasets::SourcePlace place;
  const Source* source = scene_.source(dataset.name);
  if (source == nullptr) return fail(Errc::NotFound, "no source of " + dataset.name);
  place.path = source->place().path;
  place.drive = source->place().disk;
  if (dataset.volume.empty()) return place;
  if (scene_.drives.mounted(dataset.volume) != Mounted::Right)
    return fail(Errc::Unavailable, "volume " + dataset.volume + " is not ready");
  place.mount = Drives::mount_point(dataset.volume);
  place.numbers = Drives::numbers(dataset.volume);
  return place;
}

}  // namespace spark::histories::copies
