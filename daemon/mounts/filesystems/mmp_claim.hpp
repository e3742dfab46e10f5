// Multi-mount protection where nothing else keeps writers apart, by libext2fs. Workers only.
#pragma once

#include <chrono>
#include <string>

#include "base/result.hpp"

namespace spark::mounts {

// Keeps an ext4 that was closed cleanly for a mount that follows at once. The kernel mounts such a one
// without waiting (fs/ext4/mmp.c: EXT4_MMP_SEQ_CLEAN skips both waits) and does not look at the block again
// while it writes it in time, so that two hosts which mount in the same moment may both succeed. Here `node`
// is put into the MMP block first and has to stand there unchanged for `wait`, in which a kernel that has it
// mounted would have written it again. Without MMP, or of one that is open, it does nothing, at once: for
// that one the kernel itself waits. Refused: another host claims or has mounted it, with its name.
Result<> claim_by_mmp(const std::string& device, const std::string& node, std::chrono::milliseconds wait);

}  // namespace spark::mounts
