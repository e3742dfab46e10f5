// All volumes of the configuration in force.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/plan.hpp"
#include "daemon/timer.hpp"
#include "daemon/volumes/volume/volume.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::volumes {

using MakeSeams =
    std::function<Seams(const config::Volume& volume, const std::optional<config::Target>& target)>;

class VolumeSet {
 public:
  VolumeSet(asio::any_io_executor executor, workers::Runner& runner, MakeSeams make_seams, const Clock& clock,
            std::filesystem::path state_dir, Volume::OnChange on_change);

  void start(const config::Config& config);
  std::vector<config::InForce> in_force() const;
  // The users of the mount that the volume's step would remove, as a sentence; empty if there are none.
  asio::awaitable<std::string> why_it_stays(std::string volume) const;
  // The steps for each volume if `wanted` were put in force; steps that would unmount a volume in use are
  // refused.
  asio::awaitable<std::vector<config::Step>> plan(const config::Config& wanted) const;
  // Performs the steps. If a step is refused or fails, the volume stays unchanged; one that was down stays
  // down. One call at a time.
  asio::awaitable<std::vector<config::Step>> apply(const config::Config& wanted);
  void stop();
  // A condition that the target's volumes may wait for has changed; one of this host's controllers has
  // changed.
  void target_changed(const std::string& target);
  void controller_changed(const std::string& controller);
  // A namespace has appeared. Many may appear at the same time, so they are handled together a moment later.
  void namespace_added();

  std::shared_ptr<Volume> find(const std::string& name) const;
  const std::vector<std::shared_ptr<Volume>>& all() const { return volumes_; }

 private:
  // `made`: the other new ones so far.
  std::shared_ptr<Volume> make(const config::Config& config, const config::Volume& settings,
                               const std::vector<std::shared_ptr<Volume>>& made);
  asio::awaitable<void> take_down(std::vector<config::Step>& steps);
  void replace(const config::Config& wanted, std::vector<config::Step>& steps);
  asio::awaitable<void> remove_guards();
  asio::awaitable<void> set_live(const config::Config& wanted, std::vector<config::Step>& steps);

  asio::any_io_executor executor_;
  workers::Runner& runner_;
  const Clock& clock_;
  MakeSeams make_seams_;
  std::filesystem::path state_dir_;
  Volume::OnChange on_change_;
  std::vector<std::shared_ptr<Volume>> volumes_;  // in the config's order
  Timer added_;                                   // when added namespaces are handled
  bool is_look_due_ = false;
};

}  // namespace spark::volumes
