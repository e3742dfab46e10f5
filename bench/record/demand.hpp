// The data rate that a training job consumes, given as a number or as a known job.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::bench {

// The job's access order within a large file.
enum class ReadOrder { Unknown, Sequential, Random };
const char* to_string(ReadOrder order);

struct Demand {
  double bytes_per_second = 0;  // 0: as fast as the storage delivers
  std::string words;            // "unet3d on one H100"; empty: the rate alone
  ReadOrder order = ReadOrder::Unknown;
  Bytes mean_file = 0;                     // of the files that the job was seen to read; 0: unknown
  std::vector<std::string> cautions = {};  // about its measurement, for the verdict
};

// A server that loads a model, no job with a read rate.
inline constexpr const char* kModelLoad = "model-load";

// "llama3-8b": the size of its checkpoint; 0: no such job.
Bytes checkpoint_like(const std::string& job);

// "unet3d", "resnet50-a100", "8xresnet50" (eight accelerators). Invalid names the nearest match.
Result<Demand> demand_like(const std::string& job);

}  // namespace spark::bench
