// All volumes of the configuration in force.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/volumes/sight.hpp"
#include "daemon/volumes/volume.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

class VolumeSet {
 public:
  VolumeSet(asio::any_io_executor executor, workers::Runner& runner, const Clock& clock,
            std::filesystem::path state_dir, Volume::OnChange on_change);

  // Starts what is new, starts anew what changed, lets go of what is gone (it stays mounted), leaves the rest
  // alone. Gives a sentence for each change.
  std::vector<std::string> apply(const config::Config& config);
  void stop();

  std::shared_ptr<Volume> find(const std::string& name) const;
  const std::vector<std::shared_ptr<Volume>>& all() const { return volumes_; }

 private:
  std::shared_ptr<Volume> make(const config::Config& config, const config::Volume& settings);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  Sight sight_;
  std::filesystem::path state_dir_;
  Volume::OnChange on_change_;
  std::vector<std::shared_ptr<Volume>> volumes_;  // in the config's order
};

}  // namespace spark::volumes
