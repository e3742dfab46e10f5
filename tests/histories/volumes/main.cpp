// Random histories of volumes: docs/testing.md.
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/histories/engine/program.hpp"
#include "tests/histories/volumes/oracles.hpp"
#include "tests/histories/volumes/steps.hpp"

namespace spark::histories {
namespace {

class VolumesWorld final : public World {
 public:
  VolumesWorld(std::uint64_t seed, const Story& story) : cluster_(seed, story), oracles_(cluster_) {
    cluster_.observe = [this] { oracles_.observe(); };
    cluster_.on_end = [this](std::size_t host, const Request& request) {
      oracles_.request_ended(host, request);
    };
    for (std::size_t i = 0; i < kHosts; ++i) {
      for (const VolumeSettings& volume : cluster_.hosts[i].volumes) describe(i, volume);
    }
    cluster_.pass(Duration(10'000));
    check_daemons();
  }

  void take(const Step& step) override {
    Dice dice(step);
    for (const auto steps : {fault_steps(), operator_steps(), program_steps()}) {
      for (const VolumeAction& one : steps) {
        if (step.action == one.name) one.take(cluster_, dice);
      }
    }
    static constexpr std::array kPauses = {0, 50, 300, 1'000, 3'000, 8'000};
    cluster_.pass(Duration(kPauses[step.dice[3] / 7 % kPauses.size()]));
  }

  std::optional<Violation> check() override {
    oracles_.observe();
    return cluster_.judge.first();
  }

  std::optional<Violation> settle() override {
    bool was_full = false;
    for (HostState& one : cluster_.hosts) was_full = was_full || one.host->state.is_full;
    end_faults(cluster_);
    cluster_.pass(kSettled);
    if (was_full) {
      oracles_.settled_without_room();
      for (HostState& one : cluster_.hosts) one.host->state.is_full = false;
      cluster_.pass(kSettled);
    }
    for (int looks = 0; looks < kLooks && !oracles_.are_all_at_rest(); ++looks) cluster_.pass(Duration(700));
    oracles_.observe();
    oracles_.settled();
    return cluster_.judge.first();
  }

  Duration elapsed() const override { return cluster_.time.elapsed(); }

 private:
  static constexpr Duration kSettled{600'000};
  static constexpr int kLooks =
      450;  // until no attempt is in progress; multi-mount protection may take 254 s

  // A world in which nothing runs keeps every promise. The configuration refuses two volumes of one namespace
  // only.
  void check_daemons() {
    for (std::size_t i = 0; i < kHosts; ++i) {
      const auto& volumes = cluster_.hosts[i].volumes;
      const bool shares_namespace =
          volumes.size() > 1 && &cluster_.disk_of(volumes[0]) == &cluster_.disk_of(volumes[1]);
      if (cluster_.hosts[i].daemon == nullptr && !shares_namespace)
        throw std::runtime_error("the daemon of a host does not accept its configuration");
    }
  }

  void describe(std::size_t host, const VolumeSettings& volume) {
    const Disk& disk = cluster_.disk_of(volume);
    cluster_.tell(cluster_.hosts[host].host->name + " has volume " + volume.name + " on " + volume.mount +
                  ": " + (volume.is_exclusive ? "exclusive, fence " + volume.fence : "read-only") +
                  (volume.uuid.empty() ? "" : ", its uuid configured") + "; " + disk.name + " of target " +
                  volume.target + ", " + volume.subsystem + " namespace " + std::to_string(volume.nsid) +
                  ", " + disk.fs.type + (disk.fs.has_mmp ? " with MMP" : "") +
                  (!disk.reservations.offers ? ", no reservations"
                   : disk.keeps_reservations ? ", reservations that survive a restart"
                                             : ", reservations that a restart forgets"));
  }

  Cluster cluster_;
  Oracles oracles_;
};

Area volumes_area() {
  Area area;
  area.name = "volumes";
  for (const auto steps : {fault_steps(), operator_steps(), program_steps()}) {
    for (const VolumeAction& one : steps) area.actions.push_back({one.name, one.weight});
  }
  area.make = [](std::uint64_t seed, const Story& story) {
    return std::make_unique<VolumesWorld>(seed, story);
  };
  return area;
}

}  // namespace
}  // namespace spark::histories

// With SPARK_STAGE_DEBUG in the environment, the daemon's log is between the lines of the story.
int main(int argc, char** argv) {
  if (std::getenv("SPARK_STAGE_DEBUG") == nullptr) spdlog::default_logger()->set_level(spdlog::level::off);
  return spark::histories::history_main(spark::histories::volumes_area(), argc, argv);
}
