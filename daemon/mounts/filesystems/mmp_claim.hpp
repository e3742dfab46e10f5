// Multi-mount protection, for the case that nothing else excludes other writers, by libext2fs. Workers only.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spark::mounts {

// In the MMP block, in place of the device's name: no kernel has it mounted, and if its host died meanwhile,
// it stays.
inline constexpr std::string_view kMmpClaim = "spark-stage claim";

// Claims a cleanly closed ext4 for a mount that follows immediately. The kernel mounts such a file system
// without waiting (fs/ext4/mmp.c: EXT4_MMP_SEQ_CLEAN skips both waits) and does not read the block again
// while it writes it in time, so two hosts that mount at the same moment may both succeed. This function
// first writes `node` to the MMP block. The block must then stay unchanged for `wait`, in which a kernel that
// has it mounted would rewrite it. Does nothing, without waiting, if there is no MMP, or if the file system
// is open: the kernel itself waits for that one. But the claim of another host ends with a closed block,
// which the kernel would take for free: it is watched for `wait`, and one that is still there then is of a
// host that died, and is replaced. Refused, with the other host's name, if another host claims it or has
// mounted it.
Result<> claim_by_mmp(const std::string& device, const std::string& node, std::chrono::milliseconds wait);

}  // namespace spark::mounts
