#include "bench/plan.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr Bytes kLayoutStep = 4 * kMiB;
constexpr double kAssumedLayoutRate = 500e6;  // bytes per second
constexpr double kSlowestLayoutRate = 20e6;

bool is_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 40 && name.find_first_not_of(kAllowed) == std::string::npos;
}

Duration time_to_write(Bytes bytes, double rate) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(bytes) / rate * 1000));
}

std::size_t scenario_count(const BenchOptions& options) {
  return options.scenarios.empty() ? all_scenarios().size() : options.scenarios.size();
}

Result<> check_numbers(const BenchOptions& options) {
  if (options.size < kLayoutStep || options.size > 16 * kTiB) {
    return fail(Errc::Invalid, "a benchmark file of " + format_bytes(options.size) + " is out of range",
                "choose a size from 4MiB to 16TiB");
  }
  if (options.runtime < std::chrono::seconds(1) || options.runtime > std::chrono::hours(1)) {
    return fail(Errc::Invalid, "a runtime of " + format_duration(options.runtime) + " a cell is out of range",
                "choose 1s to 1h");
  }
  if (options.rounds < 1 || options.rounds > 100) {
    return fail(Errc::Invalid, std::to_string(options.rounds) + " rounds are out of range",
                "choose 1 to 100");
  }
  return {};
}

Result<> check_paths(const std::vector<PathUnderTest>& paths) {
  if (paths.empty()) {
    return fail(Errc::Invalid, "there is no path to measure",
                "give paths, for example: spark-stage bench local=/var/tmp nfs=/mnt/nfs");
  }
  std::set<std::string> names;
  for (const PathUnderTest& path : paths) {
    if (!is_name(path.name)) {
      return fail(Errc::Invalid, "'" + printable(path.name) + "' can't name a path",
                  "use 1 to 40 letters, digits, '.', '_' or '-'");
    }
    if (!names.insert(path.name).second) {
      return fail(Errc::Invalid, "two paths are named '" + path.name + "'",
                  "write NAME=PATH with another name");
    }
  }
  return {};
}

}  // namespace

Result<PathUnderTest> parse_path_argument(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const bool named = equals != std::string::npos && argument.find('/') >= equals;
  PathUnderTest path;
  path.path = named ? argument.substr(equals + 1) : argument;
  if (path.path.empty() || path.path.find('\0') != std::string::npos) {
    return fail(Errc::Invalid, "'" + printable(argument) + "' has no path",
                "write NAME=PATH, for example nfs=/mnt/nfs");
  }
  if (named) {
    path.name = argument.substr(0, equals);
    if (is_name(path.name)) return path;
    return fail(Errc::Invalid, "'" + printable(path.name) + "' can't name a path",
                "use 1 to 40 letters, digits, '.', '_' or '-' before the '='");
  }
  const std::size_t last = path.path.find_last_not_of('/');
  const std::string trimmed = path.path.substr(0, last == std::string::npos ? 0 : last + 1);
  path.name = trimmed.substr(trimmed.rfind('/') + 1);
  if (path.name.empty()) path.name = "root";
  if (is_name(path.name)) return path;
  return fail(Errc::Invalid, "no name can be made from the path '" + printable(path.path) + "'",
              "write NAME=PATH, for example nfs=/mnt/nfs");
}

BenchOptions quick(BenchOptions options) {
  options.runtime = std::min(options.runtime, std::chrono::seconds(2));
  options.size = std::min<Bytes>(options.size, kGiB);
  return options;
}

Result<std::vector<const Scenario*>> check_options(const BenchOptions& options) {
  if (auto paths = check_paths(options.paths); !paths) return tl::unexpected<Error>(std::move(paths.error()));
  if (auto numbers = check_numbers(options); !numbers) {
    return tl::unexpected<Error>(std::move(numbers.error()));
  }
  std::set<const Scenario*> wanted;
  for (const std::string& id : options.scenarios) {
    auto scenario = find_scenario(id);
    if (!scenario) return tl::unexpected<Error>(std::move(scenario.error()));
    wanted.insert(*scenario);
  }
  std::vector<const Scenario*> chosen;
  for (const Scenario& scenario : all_scenarios()) {
    if (wanted.empty() || wanted.count(&scenario) == 1) chosen.push_back(&scenario);
  }
  return chosen;
}

std::vector<PlannedCell> plan_cells(std::size_t paths, const std::vector<const Scenario*>& scenarios,
                                    unsigned rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PlannedCell> cells;
  for (unsigned round = 1; round <= rounds; ++round) {
    for (const Scenario* scenario : scenarios) {
      const std::size_t first = cells.size();
      for (std::size_t path = 0; path < paths; ++path) cells.push_back({path, scenario, round});
      // Fisher-Yates by hand: std::shuffle draws differently from library to library.
      for (std::size_t left = paths; left > 1; --left) {
        std::swap(cells[first + left - 1], cells[first + random() % left]);
      }
    }
  }
  return cells;
}

Bytes layout_size(const BenchOptions& options) {
  return options.size / kLayoutStep * kLayoutStep;
}

Duration cell_time(const BenchOptions& options) {
  return options.runtime + Duration(700);
}

Duration cell_deadline(const BenchOptions& options) {
  return options.runtime + std::chrono::seconds(60);
}

Duration layout_deadline(const BenchOptions& options) {
  return std::chrono::seconds(60) + time_to_write(options.size, kSlowestLayoutRate);
}

Duration longest_run(const BenchOptions& options, std::size_t cells) {
  const auto around = std::chrono::minutes(2);  // preparing and removing, each with its own deadline
  return static_cast<std::int64_t>(cells) * (cell_deadline(options) + std::chrono::seconds(10)) +
         static_cast<std::int64_t>(options.paths.size()) * (layout_deadline(options) + around);
}

Duration estimate(const BenchOptions& options) {
  const auto paths = static_cast<std::int64_t>(options.paths.size());
  const auto cells = paths * options.rounds * static_cast<std::int64_t>(scenario_count(options));
  return cells * cell_time(options) +
         paths * (std::chrono::seconds(1) + time_to_write(options.size, kAssumedLayoutRate));
}

}  // namespace spark::bench
