// One to three hosts with the real outputs of the daemon, a job, and a volume.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/histories/engine/history.hpp"
#include "tests/histories/outputs/daemon.hpp"
#include "tests/histories/outputs/job.hpp"
#include "tests/histories/outputs/oracles.hpp"
#include "tests/histories/outputs/scene.hpp"
#include "tests/histories/outputs/workers.hpp"

namespace spark::histories {

using Dice = std::array<std::uint32_t, 4>;

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
  using Act = void (OutputsWorld::*)(const Dice&);
  struct ActionRow {
    const char* name;
    unsigned weight;
    Act act;
    bool is_optional;  // a seed leaves half of these out, so that no defect hides all others
  };
  static const std::vector<ActionRow>& rows();

  // The job (actions_job.cpp).
  void save(const Dice& dice);
  void save_in_part(const Dice& dice);
  void save_again(const Dice& dice);
  void kill_job(const Dice& dice);
  void resume_older(const Dice& dice);
  void move_job(const Dice& dice);
  void remove_one(const Dice& dice);
  void touch(const Dice& dice);
  void write_beside(const Dice& dice);
  void link_latest(const Dice& dice);
  // Hosts and the volume (actions_hosts.cpp).
  void set_clock(const Dice& dice);
  void lose_volume(const Dice& dice);
  void return_volume(const Dice& dice);
  void fill_volume(const Dice& dice);
  void free_volume(const Dice& dice);
  void take_volume_over(const Dice& dice);
  void kill_daemon(const Dice& dice);
  void cut_power(const Dice& dice);
  void start_daemon(const Dice& dice);
  void doom_worker(const Dice& dice);
  void slow_worker(const Dice& dice);
  // Requests (actions_requests.cpp).
  void ask_latest(const Dice& dice);
  void send_newest(const Dice& dice);
  void send_by_hand(const Dice& dice);
  void reload(const Dice& dice);
  void wait(const Dice& dice);

  void choose_settings(std::mt19937_64& random);
  void add_hosts(std::size_t count);
  Machine& machine(std::uint32_t die) { return *scene_.machines[die % scene_.machines.size()]; }
  void start(Machine& machine);
  void run_for(Duration duration);
  // All that the job still has to do, with pauses.
  void run_job(std::uint32_t most, std::uint32_t die);
  void ask_latest_of(Machine& machine);
  void end_faults();
  void note_volume(std::size_t host);
  std::optional<Violation> wait_until_settled();

  Scene scene_;
  Oracles oracles_{scene_};
  Workers workers_{scene_, oracles_};
  Job job_;
  unsigned kept_by_job_ = 0;        // checkpoints, by its own rotation; 0: all
  std::set<std::string> left_out_;  // actions
  unsigned exports_ = 0;
};

}  // namespace spark::histories
