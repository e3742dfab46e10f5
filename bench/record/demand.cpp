#include "bench/record/demand.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"

namespace spark::bench {
namespace {

// One accelerator: batch x record / compute time, from the job files of MLPerf Storage 3.0. unet3d and
// retinanet are its training benchmarks; cosmoflow and resnet50 are what-if there.
struct Job {
  std::string_view name, model, accelerator;
  double bytes_per_second;
  Bytes mean_file = 0;  // 0: files of any size
  bool is_what_if = false;
};

constexpr Bytes kRetinanetFile = 322'957;

constexpr std::array kJobs = {
    Job{"unet3d", "unet3d", "H100", 3.18e9},
    Job{"unet3d-b200", "unet3d", "B200", 6.33e9},
    Job{"unet3d-a100", "unet3d", "A100", 1.61e9},
    Job{"retinanet", "retinanet", "B200", 0.163e9, kRetinanetFile},
    Job{"retinanet-mi355", "retinanet", "MI355", 0.163e9, kRetinanetFile},
    Job{"cosmoflow", "cosmoflow", "H100", 0.81e9, 0, true},
    Job{"cosmoflow-a100", "cosmoflow", "A100", 0.51e9, 0, true},
    Job{"resnet50", "resnet50", "H100", 0.205e9, 0, true},
    Job{"resnet50-a100", "resnet50", "A100", 0.105e9, 0, true},
};

// One checkpoint of all hosts, as MLPerf Storage has them.
struct Checkpoint {
  std::string_view name;
  Bytes bytes;
};

constexpr std::array kCheckpoints = {
    Checkpoint{"llama3-8b", 105'000'000'000}, Checkpoint{"llama3-70b", 912'000'000'000},
    Checkpoint{"llama3-405b", 5'290'000'000'000}, Checkpoint{"llama3-1t", 18'000'000'000'000}};

}  // namespace

const char* to_string(ReadOrder order) {
  static constexpr const char* kWords[] = {"unknown", "sequential", "random"};
  return kWords[static_cast<std::size_t>(order)];
}

Bytes checkpoint_like(const std::string& job) {
  const auto* const known = std::ranges::find(kCheckpoints, job, &Checkpoint::name);
  return known == kCheckpoints.end() ? 0 : known->bytes;
}

Result<Demand> demand_like(const std::string& job) {
  const std::size_t times = job.find('x');
  const auto given = parse_number<unsigned>(std::string_view(job).substr(0, times));
  const bool is_counted = given && times != std::string::npos;
  const unsigned count = is_counted ? *given : 1;
  const std::string_view name = std::string_view(job).substr(is_counted ? times + 1 : 0);
  std::vector<std::string> names;
  for (const Job& known : kJobs) {
    names.emplace_back(known.name);
    if (known.name != name || count < 1 || count > 10'000) continue;
    const std::string many = count == 1 ? "one " : std::to_string(count) + " ";
    return Demand{known.bytes_per_second * count,
                  std::string(known.model) + " on " + many + std::string(known.accelerator) +
                      (known.is_what_if ? ", what-if of MLPerf Storage" : ""),
                  ReadOrder::Unknown, known.mean_file};
  }
  for (const Checkpoint& known : kCheckpoints) names.emplace_back(known.name);
  names.emplace_back(kModelLoad);
  const std::string near = nearest(name, names);
  return fail(Errc::Invalid, "no job is known as '" + printable(job) + "'",
              near.empty() || near == name ? "choose from " + join(names, ", ") +
                                                 ", with a count as in 8xresnet50, or give --demand RATE"
                                           : "did you mean '" + near + "'?");
}

}  // namespace spark::bench
