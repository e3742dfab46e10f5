#include "tests/histories/outputs/hosts.hpp"

#include <algorithm>
#include <filesystem>

namespace spark::histories {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMegabytes = 8;

}  // namespace

void Hosts::add(std::size_t count) {
  scene_.volume.path = empty_disk("volume", kMegabytes);
  const auto follow = [](const fs::path& disk, const Clock& clock) {
    struct stat info {};
    (void)::stat(disk.c_str(), &info);
    file_times().follow(
        info.st_dev, [&clock] { return std::chrono::nanoseconds(clock.wall().time_since_epoch()).count(); });
  };
  follow(scene_.volume.path, scene_.time);
  scene_.volume.is_away.resize(count);
  scene_.volume.changed.resize(count, scene_.now());
  scene_.truth.here.resize(count);
  for (std::size_t index = 0; index < count; ++index) {
    auto one = std::make_unique<Machine>(scene_.time, index);
    one->disk = empty_disk(one->name(), kMegabytes);
    fs::create_directories(one->job_folder());
    fs::create_directories(one->disk / "state" / "outputs");
    follow(one->disk, *one);
    one->booted = scene_.now() - std::chrono::hours(1);
    scene_.machines.push_back(std::move(one));
  }
}

void Hosts::start(Machine& machine) {
  machine.daemon = std::make_unique<Daemon>(scene_, machine, workers_.hooks_for(machine));
  scene_.time.run_ready();
}

void Hosts::run_for(Duration duration) {
  for (Duration left = duration; left > Duration(0) && !scene_.violation;) {
    const Duration part = std::min(left, Duration(5'000));
    scene_.time.run_for(part);
    left -= part;
    for (const auto& one : scene_.machines) oracles_.check_facts(*one);
  }
}

}  // namespace spark::histories
