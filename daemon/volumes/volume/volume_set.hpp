// All volumes of the configuration in force.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/plan.hpp"
#include "daemon/volumes/volume/volume.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

using MakeSeams = std::function<Seams(const config::Volume& volume,
                                      const std::optional<config::Target>& target, OtherVolumes others)>;

class VolumeSet {
 public:
  VolumeSet(asio::any_io_executor executor, workers::Runner& runner, MakeSeams make_seams, const Clock& clock,
            std::filesystem::path state_dir, Volume::OnChange on_change);

  void start(const config::Config& config);
  std::vector<config::InForce> in_force() const;
  // Who uses what the volume's step would unmount, as a sentence; empty if nothing does.
  asio::awaitable<std::string> why_it_stays(std::string volume) const;
  // What each volume would go through if `wanted` were in force, and which of that is refused, because
  // somebody uses what would be unmounted.
  asio::awaitable<std::vector<config::Step>> plan(const config::Config& wanted) const;
  // Does it. A volume whose step is refused, before or on the way, stays as it was; one that was down stays
  // down. Not twice at a time.
  asio::awaitable<std::vector<config::Step>> apply(const config::Config& wanted);
  void stop();
  // Something that its volumes may wait for has changed at a target; one of this host's controllers has.
  void target_changed(const std::string& target);
  void controller_changed(const std::string& controller);
  // So has a namespace. Many may come at once: they are looked for together, a moment later.
  void namespace_added();

  std::shared_ptr<Volume> find(const std::string& name) const;
  const std::vector<std::shared_ptr<Volume>>& all() const { return volumes_; }

 private:
  std::shared_ptr<Volume> make(const config::Config& config, const config::Volume& settings);
  asio::awaitable<void> take_down(std::vector<config::Step>& steps);
  void replace(const config::Config& wanted, const std::vector<config::Step>& steps);
  asio::awaitable<void> remove_guards();
  asio::awaitable<void> set_live(const config::Config& wanted, std::vector<config::Step>& steps);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  MakeSeams make_seams_;
  std::filesystem::path state_dir_;
  Volume::OnChange on_change_;
  std::vector<std::shared_ptr<Volume>> volumes_;  // in the config's order
  asio::steady_timer added_;                      // when namespaces that were added are looked for
  bool is_look_due_ = false;
};

}  // namespace spark::volumes
