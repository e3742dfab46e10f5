// The folder that a run makes in a path, writes in and removes; and the ones that killed runs left.
// Every call here touches the path and may hang: run it apart (process.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::bench {

inline constexpr const char* kScratchPrefix = ".spark-stage-bench-";
inline constexpr const char* kScratchMarker = "owner.json";
inline constexpr const char* kScratchData = "data";      // data, data1 … data9
inline constexpr const char* kScratchSmall = "small";    // a folder of files that have numbers for names
inline constexpr const char* kScratchStaged = "staged";  // a folder that the copy engine writes in

// Who made a scratch folder; stands in its marker.
struct Owner {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot: tells a pid from its reuse
  std::string boot_id, pid_namespace;
  std::int64_t expires = 0;  // Unix time by which the run is over, however slow
};

Owner this_process(std::int64_t expires);

// Over for certain: its process is gone, or it belongs to another boot, host or container and has expired.
bool is_over(const Owner& owner, std::int64_t now);

// ".spark-stage-bench-k3Zp9a", new at each call.
std::string new_scratch_name();

// Makes the folder (mode 0700, must not exist) with its marker in it.
Result<> make_scratch(const std::string& folder, const Owner& owner);

// Removes the marker, the data, the two folders of ours in it and the folder, and nothing else: with a
// foreign file in it the folder stays, and that is an error. Absent is fine.
Result<> remove_scratch(const std::string& folder);

// Removes what runs that are over left in `path`. Sentences about what was found.
std::vector<std::string> sweep_leftovers(const std::string& path, std::int64_t now);

}  // namespace spark::bench
