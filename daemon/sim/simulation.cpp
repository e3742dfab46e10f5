#include "daemon/sim/simulation.hpp"

#include "daemon/config/parse.hpp"
#include "daemon/sim/confinement.hpp"
#include "daemon/sim/simulated_host.hpp"

namespace spark::sim {

Result<MakeHost> prepare(const std::filesystem::path& state_dir, const config::Config& config) {
  if (auto fits = config::check_simulation(config, true); !fits) return fits.take_error();
  auto scenario = load_scenario(config);
  if (!scenario) return scenario.take_error();
  if (auto dropped = drop_privileges(); !dropped) return dropped.take_error();
  if (auto claimed = claim_state_folder(state_dir); !claimed) return claimed.take_error();
  return [config, scenario = std::move(*scenario)](HostContext context) -> std::unique_ptr<Host> {
    return std::make_unique<SimulatedHost>(std::move(context), config, scenario);
  };
}

}  // namespace spark::sim
