// One to three hosts with the real outputs of the daemon, a job, and a volume.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/histories/engine/history.hpp"
#include "tests/histories/outputs/host_actions.hpp"
#include "tests/histories/outputs/hosts.hpp"
#include "tests/histories/outputs/job_actions.hpp"
#include "tests/histories/outputs/request_actions.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class OutputsWorld final : public World {
 public:
  OutputsWorld(std::uint64_t seed, const Story& story);
  ~OutputsWorld() override;

  static std::vector<Action> actions();

  void take(const Step& step) override;
  std::optional<Violation> check() override;
  std::optional<Violation> settle() override;
  Duration elapsed() const override { return scene_.time.elapsed(); }

 private:
  void bind_actions();
  void choose_settings(std::mt19937_64& random);
  void end_faults();
  std::optional<Violation> wait_until_settled();

  Scene scene_;
  Hosts hosts_{scene_};
  Job job_;
  JobActions job_actions_{scene_, hosts_, job_};
  HostActions host_actions_{scene_, hosts_, job_actions_};
  RequestActions request_actions_{scene_, hosts_};
  std::map<std::string, std::function<void(const Dice&)>> acts_;
  std::set<std::string> left_out_;  // actions
};

}  // namespace spark::histories
