#include "daemon/mounts/filesystems/mmp_claim.hpp"

#include <ext2fs/ext2fs.h>
#undef clamp  // newer versions of these headers define a macro of that name

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "base/text.hpp"

namespace spark::mounts {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain{1'000};

struct Freer {
  // Not ext2fs_close(), because it would write the superblock.
  void operator()(struct_ext2_filsys* filesystem) const { ext2fs_free(filesystem); }
};
using Filesystem = std::unique_ptr<struct_ext2_filsys, Freer>;

// The MMP block of a file system that may be mounted read-only here. Reads and writes bypass all caches of
// this host.
class MmpBlock {
 public:
  static Result<MmpBlock> open(const std::string& device, const std::string& doing) {
    ext2_filsys opened = nullptr;
    const errcode_t code = ext2fs_open(
        device.c_str(), EXT2_FLAG_RW | EXT2_FLAG_64BITS | EXT2_FLAG_SKIP_MMP | EXT2_FLAG_DIRECT_IO, 0, 0,
        unix_io_manager, &opened);
    if (code != 0) return failed(code, doing);
    return MmpBlock(Filesystem(opened), doing);
  }
  bool is_there() const { return filesystem_->super->s_mmp_block != 0; }

  Result<> read() {
    const errcode_t code = ext2fs_mmp_read(filesystem_.get(), filesystem_->super->s_mmp_block, raw_.data());
    if (code != 0) return failed(code, doing_ + ": reading the MMP block");
    std::memcpy(&fields, raw_.data(), sizeof fields);
    return {};
  }
  Result<> write() {
    std::memcpy(raw_.data(), &fields, sizeof fields);
    const errcode_t code = ext2fs_mmp_write(filesystem_.get(), filesystem_->super->s_mmp_block, raw_.data());
    if (code != 0) return failed(code, doing_ + ": writing the MMP block");
    return {};
  }
  std::string node() const {
    const std::string_view whole(reinterpret_cast<const char*>(fields.mmp_nodename),
                                 sizeof fields.mmp_nodename);
    return std::string(whole.substr(0, whole.find('\0')));
  }
  bool is_claim() const { return std::memcmp(fields.mmp_bdevname, kMmpClaim.data(), kMmpClaim.size()) == 0; }
  void set_claim(const std::string& node) {
    static_assert(kMmpClaim.size() < sizeof fields.mmp_bdevname);
    std::memcpy(fields.mmp_bdevname, kMmpClaim.data(), kMmpClaim.size());
    std::memset(fields.mmp_nodename, 0, sizeof fields.mmp_nodename);
    std::memcpy(fields.mmp_nodename, node.data(), std::min(node.size(), sizeof fields.mmp_nodename));
    fields.mmp_time = static_cast<std::uint64_t>(std::time(nullptr));
  }

  mmp_struct fields{};  // as last read, or to be written

 private:
  MmpBlock(Filesystem filesystem, std::string doing)
      : filesystem_(std::move(filesystem)), doing_(std::move(doing)), raw_(filesystem_->blocksize) {}
  static tl::unexpected<Error> failed(errcode_t code, const std::string& doing) {
    return fail(Errc::Failed, doing + ": " + error_message(code));
  }

  Filesystem filesystem_;
  std::string doing_;
  std::vector<char> raw_;
};

// Checks the block until `wait` is over.
Result<> watch(MmpBlock& block, std::uint32_t claim, const std::string& node, std::chrono::milliseconds wait,
               const std::string& doing) {
  const auto end = steady_clock::now() + wait;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    std::this_thread::sleep_for(std::clamp(left, std::chrono::milliseconds(0), kLookAgain));
    if (auto seen = block.read(); !seen) return seen;
    if (block.fields.mmp_seq != claim || block.node() != node) {
      return fail(Errc::Refused,
                  doing + ": host '" + printable(block.node()) + "' has opened it in the same moment",
                  "it is tried again; the other host may have it by then");
    }
    if (steady_clock::now() >= end) return {};
  }
}

}  // namespace

Result<> claim_by_mmp(const std::string& device, const std::string& node, std::chrono::milliseconds wait) {
  const std::string doing = "claiming " + printable(device);
  auto block = MmpBlock::open(device, doing);
  if (!block) return block.take_error();
  if (!block->is_there()) return {};
  if (auto seen = block->read(); !seen) return seen;
  if (block->fields.mmp_seq != EXT4_MMP_SEQ_CLEAN) {
    if (!block->is_claim()) return {};  // the kernel waits
    const auto dead = watch(*block, block->fields.mmp_seq, block->node(), wait, doing);
    if (!dead) return dead;
  }
  const std::uint32_t claim = ext2fs_mmp_new_seq();
  block->fields.mmp_seq = claim;
  block->set_claim(node);
  if (auto written = block->write(); !written) return written;
  if (auto alone = watch(*block, claim, block->node(), wait, doing); !alone) return alone;
  block->fields.mmp_seq = EXT4_MMP_SEQ_CLEAN;
  return block->write();
}

}  // namespace spark::mounts
