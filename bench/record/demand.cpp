#include "bench/record/demand.hpp"

#include <array>
#include <charconv>
#include <vector>

#include "base/text.hpp"

namespace spark::bench {
namespace {

struct Job {
  std::string_view name, model, accelerator;
  double bytes_per_second;  // of one accelerator: batch x record / compute time, from MLPerf Storage's job
                            // files
};

constexpr std::array kJobs = {
    Job{"unet3d", "unet3d", "H100", 3.18e9},       Job{"unet3d-a100", "unet3d", "A100", 1.61e9},
    Job{"cosmoflow", "cosmoflow", "H100", 0.81e9}, Job{"cosmoflow-a100", "cosmoflow", "A100", 0.51e9},
    Job{"resnet50", "resnet50", "H100", 0.205e9},  Job{"resnet50-a100", "resnet50", "A100", 0.105e9},
};

}  // namespace

const char* to_string(ReadOrder order) {
  switch (order) {
    case ReadOrder::Sequential:
      return "sequential";
    case ReadOrder::Random:
      return "random";
    case ReadOrder::Unknown:
      break;
  }
  return "unknown";
}

Result<Demand> demand_like(const std::string& job) {
  unsigned count = 1;
  std::string_view name = job;
  const auto [end, error] = std::from_chars(job.data(), job.data() + job.size(), count);
  if (error == std::errc() && end != job.data() + job.size() && *end == 'x') {
    name.remove_prefix(static_cast<std::size_t>(end - job.data()) + 1);
  } else {
    count = 1;
  }
  std::vector<std::string> names;
  for (const Job& known : kJobs) {
    names.emplace_back(known.name);
    if (known.name != name || count < 1 || count > 10'000) continue;
    const std::string many = count == 1 ? "one " : std::to_string(count) + " ";
    return Demand{known.bytes_per_second * count,
                  std::string(known.model) + " on " + many + std::string(known.accelerator),
                  ReadOrder::Unknown, 0};
  }
  const std::string near = nearest(name, names);
  return fail(Errc::Invalid, "no job is known as '" + printable(job) + "'",
              near.empty() || near == name ? "choose from " + join(names, ", ") +
                                                 ", with a count as in 8xresnet50, or give --demand RATE"
                                           : "did you mean '" + near + "'?");
}

}  // namespace spark::bench
