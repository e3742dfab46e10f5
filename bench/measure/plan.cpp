#include "bench/measure/plan.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>
#include <set>

#include "base/text.hpp"

namespace spark::bench {
namespace {

constexpr Bytes kLayoutStep = 16 * kMiB;
constexpr double kAssumedLayoutRate = 500e6;  // bytes per second
constexpr double kSlowestLayoutRate = 20e6;

bool is_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 40 && name.find_first_not_of(kAllowed) == std::string::npos;
}

Duration time_to_write(Bytes bytes, double rate) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(bytes) / rate * 1000));
}

double assumed_rate(const BenchOptions& options) {
  const auto limit = static_cast<double>(options.rate_limit);
  return limit > 0 ? std::min(kAssumedLayoutRate, limit) : kAssumedLayoutRate;
}

double slowest_rate(const BenchOptions& options) {
  const auto limit = static_cast<double>(options.rate_limit);
  return limit > 0 ? std::min(kSlowestLayoutRate, 0.5 * limit) : kSlowestLayoutRate;
}

Result<> check_numbers(const BenchOptions& options) {
  if (options.size < kLayoutStep || options.size > 16 * kTiB) {
    return fail(Errc::Invalid, "a benchmark file of " + format_bytes(options.size) + " is out of range",
                "choose a size from 16MiB to 16TiB");
  }
  if (options.runtime < std::chrono::seconds(1) || options.runtime > std::chrono::hours(1)) {
    return fail(Errc::Invalid, "a runtime of " + format_duration(options.runtime) + " a cell is out of range",
                "choose 1s to 1h");
  }
  if (options.rounds < 1 || options.rounds > 100) {
    return fail(Errc::Invalid, std::to_string(options.rounds) + " rounds are out of range",
                "choose 1 to 100");
  }
  if (options.rate_limit > 0 && options.rate_limit < kMiB) {
    return fail(
        Errc::Invalid,
        "a limit of " + format_rate(static_cast<double>(options.rate_limit)) + " is too low to measure with",
        "choose at least 1MiB/s");
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
  options.rounds = std::min(options.rounds, 3U);
  options.max_rounds = options.rounds;
  options.must_decide = options.scenarios.empty() && !options.asked.loads_model;
  if (options.must_decide) {
    options.scenarios = {fitting_scenarios(options.asked).front(), "latency", "stagecopy"};
    if (options.asked.demand.bytes_per_second > 0) options.scenarios.emplace_back("demand");
    if (options.asked.checkpoint > 0) options.scenarios.emplace_back("checkpoint");
  }
  return options;
}

Result<std::vector<const Scenario*>> check_options(const BenchOptions& options) {
  if (auto paths = check_paths(options.paths); !paths) return paths.take_error();
  if (auto numbers = check_numbers(options); !numbers) {
    return numbers.take_error();
  }
  const bool has_demand = options.asked.demand.bytes_per_second > 0;
  std::set<const Scenario*> wanted;
  for (const std::string& name : options.scenarios) {
    auto found = find_scenario(name);
    if (!found) return found.take_error();
    if ((*found)->at_demand && !has_demand) {
      return fail(Errc::Invalid, "the scenario '" + name + "' needs the job's read rate",
                  "give --demand RATE or --like JOB");
    }
    wanted.insert(*found);
  }
  std::vector<const Scenario*> chosen;
  for (const Scenario& scenario : all_scenarios()) {
    const bool fits_question = (scenario.method == Method::Load) == options.asked.loads_model;
    const bool by_default = wanted.empty() && fits_question && (has_demand || !scenario.at_demand);
    if (by_default || wanted.count(&scenario) == 1) chosen.push_back(&scenario);
  }
  return chosen;
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  while (::getrandom(&seed, sizeof seed, 0) < 0 && errno == EINTR) {
  }
  return seed;
}

std::vector<PlannedCell> plan_cells(std::size_t paths, const std::vector<const Scenario*>& scenarios,
                                    unsigned rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PlannedCell> cells;
  for (unsigned round = 0; round <= rounds; ++round) {
    for (const Scenario* scenario : scenarios) {
      std::vector<std::size_t> order(paths);
      std::iota(order.begin(), order.end(), 0);
      // Own Fisher-Yates: std::shuffle gives different orders in different libraries.
      for (std::size_t left = paths; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
      for (const std::size_t path : order) cells.push_back({path, scenario, round});
    }
  }
  return cells;
}

Bytes layout_size(const BenchOptions& options) {
  return options.size / kLayoutStep * kLayoutStep;
}

Bytes small_bytes_at_most(const BenchOptions& options) {
  return std::max<Bytes>(options.size / 8, 16 * kSmallFileSize);
}

Bytes small_file_size(const AskedFor& asked) {
  return has_small_files(asked) ? mean_dataset_file(asked) : kSmallFileSize;
}

std::uint64_t small_file_count(const BenchOptions& options, const std::vector<const Scenario*>& scenarios) {
  if (std::ranges::find(scenarios, Method::Files, &Scenario::method) == scenarios.end()) return 0;
  return std::clamp<std::uint64_t>(options.size / 8 / small_file_size(options.asked), 16, kMostSmallFiles);
}

Bytes room_of(const BenchOptions& options, const std::vector<const Scenario*>& scenarios) {
  const bool copies = std::ranges::find(scenarios, Method::Copy, &Scenario::method) != scenarios.end();
  const bool has_small = small_file_count(options, scenarios) > 0;
  return layout_size(options) + (has_small ? small_bytes_at_most(options) + kLargestSmallFile : 0) +
         (copies ? layout_size(options) / kLargeFiles : 0);
}

double cell_rate(const BenchOptions& options, const Scenario& scenario) {
  const auto limit = static_cast<double>(options.rate_limit);
  const double demand = scenario.at_demand ? options.asked.demand.bytes_per_second : 0;
  if (limit <= 0 || demand <= 0) return std::max(limit, demand);
  return std::min(limit, demand);
}

Duration cell_time(const BenchOptions& options, const Scenario& scenario) {
  const Duration around(700);
  if (scenario.method == Method::Load)
    return around + time_to_write(layout_size(options), assumed_rate(options));
  if (scenario.method != Method::Copy) return options.runtime + around;
  return around + time_to_write(layout_size(options) / kLargeFiles, assumed_rate(options));
}

Duration cell_deadline(const BenchOptions& options) {
  const Duration usual = options.runtime + std::chrono::seconds(60) +
                         time_to_write(options.size / kLargeFiles, slowest_rate(options));
  const bool loads = options.asked.loads_model || std::ranges::any_of(options.scenarios, is_loading);
  return loads ? std::max(usual, layout_deadline(options)) : usual;
}

Duration layout_deadline(const BenchOptions& options) {
  return std::chrono::seconds(60) + time_to_write(options.size, slowest_rate(options));
}

Duration longest_run(const BenchOptions& options, std::size_t cells) {
  const auto around = std::chrono::minutes(2);  // preparation and removal, each with its own deadline
  const Duration longest = std::max(cell_deadline(options), layout_deadline(options));
  return static_cast<std::int64_t>(cells) * (longest + std::chrono::seconds(10)) +
         static_cast<std::int64_t>(options.paths.size()) * (layout_deadline(options) + around);
}

namespace {

// Of one round, or the warm-up.
Duration round_time(const BenchOptions& options, const std::vector<const Scenario*>& scenarios) {
  const auto paths = static_cast<std::int64_t>(options.paths.size());
  Duration all{};
  for (const Scenario* scenario : scenarios) {
    const auto visits = scenario->method == Method::Copy ? paths - 1 : paths;
    all += visits * cell_time(options, *scenario);
  }
  return all;
}

// Small files are made one after the other.
Duration preparation_time(const BenchOptions& options, const std::vector<const Scenario*>& scenarios) {
  constexpr Duration kEachFile{1};
  const std::uint64_t files = small_file_count(options, scenarios);
  return std::chrono::seconds(1) + time_to_write(layout_size(options), assumed_rate(options)) +
         time_to_write(files * small_file_size(options.asked), assumed_rate(options)) +
         static_cast<std::int64_t>(files) * kEachFile;
}

}  // namespace

Duration estimate(const BenchOptions& options) {
  const auto scenarios = check_options(options);
  if (!scenarios) return {};
  const auto paths = static_cast<std::int64_t>(options.paths.size());
  return paths * preparation_time(options, *scenarios) + kIdleTime +
         static_cast<std::int64_t>(options.rounds + 1) * round_time(options, *scenarios);
}

Duration estimate_at_most(const BenchOptions& options) {
  const auto scenarios = check_options(options);
  const Duration usual = estimate(options);
  if (!scenarios || options.max_rounds <= options.rounds) return usual;
  const Duration all = usual + static_cast<std::int64_t>(options.max_rounds - options.rounds) *
                                   round_time(options, *scenarios);
  return std::min(all, std::max(usual, options.patience));
}

}  // namespace spark::bench
