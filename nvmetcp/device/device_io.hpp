// Whether I/O of any process completes on a namespace's device. From sysfs: never blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace spark::nvmetcp {

// How many requests to the disk ("nvme1n1"), and to its paths through these controllers ("nvme3"), have ended
// since each appeared: two answers that differ mean that some have ended in between. No value: the kernel
// does not count them.
std::optional<std::uint64_t> completed_io(const SystemRoot& root, const std::string& disk,
                                          const std::vector<std::string>& controllers);

}  // namespace spark::nvmetcp
