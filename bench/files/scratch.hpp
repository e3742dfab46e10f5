// The folder that a run creates in a path, writes in and removes; also removes those of killed runs. Every
// call here touches the path and may hang: run it in a child (process.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/described.hpp"
#include "base/result.hpp"

namespace spark::bench {

inline constexpr const char* kScratchPrefix = ".spark-stage-bench-";
inline constexpr const char* kScratchMarker = "owner.json";
inline constexpr const char* kScratchData = "data";      // data, data1 … data9
inline constexpr const char* kScratchSmall = "small";    // a folder of numbered files
inline constexpr const char* kScratchStaged = "staged";  // a folder for the copy engine

// The creator of a scratch folder, as stored in the folder's marker.
struct Owner {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot; distinguishes a reused PID
  std::string boot_id, pid_namespace;
  std::int64_t expires = 0;  // Unix time at which the run has ended even if slow
};
SPARK_MESSAGE(Owner, (pid, start_ticks, boot_id, pid_namespace, expires));

Owner this_process(std::int64_t expires);

// True only if certain: the process has ended, or it belongs to another boot, host or container and has
// expired.
bool is_over(const Owner& owner, std::int64_t now);

// ".spark-stage-bench-k3Zp9a", with a new random suffix for each call.
std::string new_scratch_name();

// Creates the folder (mode 0700, must not exist) and its marker.
Result<> make_scratch(const std::string& folder, const Owner& owner);

// Removes the marker, the data, our two subfolders and the folder, and nothing else. A foreign file in the
// folder makes it stay, with an error. An absent folder is fine.
Result<> remove_scratch(const std::string& folder);

// Removes the folders of ended runs from `path`. Returns a sentence for each finding.
std::vector<std::string> sweep_leftovers(const std::string& path, std::int64_t now);

}  // namespace spark::bench
