#include "staging/cache/catalog/reserve.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

namespace {

constexpr Bytes kReserve = kMiB, kLeast = kMiB / 8, kMuch = 16 * kMiB;
// For the log and the index of a catalog, the folder and the lock of a dataset, and what is made beside them.
constexpr std::uint64_t kInodes = 8, kManyInodes = 8 * kInodes;
constexpr char kName[] = ".reserve";

struct Free {
  Bytes all, certain;
  std::uint64_t inodes;
};

// None: unknown. Root may use what a file system keeps for root, but not the blocks that ext4 keeps for
// itself.
std::optional<Free> free_in(const std::filesystem::path& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return std::nullopt;
  const bool has_any_number = space.f_files == 0;  // as btrfs
  return Free{Bytes{space.f_bfree} * space.f_frsize, Bytes{space.f_bavail} * space.f_frsize,
              has_any_number ? std::numeric_limits<std::uint64_t>::max() : space.f_favail};
}

// An earlier call may have been interrupted before it had all.
void fill(const std::filesystem::path& folder, Bytes least) {
  const std::filesystem::path reserve = folder / kName;
  const auto open = [&](std::uint64_t number) {
    return UniqueFd(::open((reserve / std::to_string(number)).c_str(),
                           O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  };
  ::mkdir(reserve.c_str(), 0700);
  for (std::uint64_t number = 1; number < kInodes - 1; ++number) static_cast<void>(open(number));
  const UniqueFd space = open(0);
  for (Bytes size = kReserve; space && size >= least; size /= 2) {
    if (::fallocate(space.get(), 0, 0, static_cast<off_t>(size)) == 0) return;
    if (::ftruncate(space.get(), 0) != 0) return;
  }
}

}  // namespace

bool lacks_inodes(const std::filesystem::path& folder) {
  const auto free = free_in(folder);
  return free && free->inodes < kInodes;
}

bool lacks_blocks_of_index(const std::filesystem::path& index) {
  constexpr off_t kIndex = 32 * kKiB, kLog = 32 * kKiB;
  struct statvfs space {};
  struct stat info {};
  if (::statvfs(index.parent_path().c_str(), &space) != 0 || space.f_frsize >= 4 * kKiB) return false;
  if (::stat(index.c_str(), &info) == 0 && info.st_blocks * 512 >= kIndex) return false;
  const UniqueFd file(::open(index.parent_path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  return file && ::fallocate(file.get(), 0, 0, kIndex + kLog) != 0 && errno == ENOSPC;
}

void make_reserve(const std::filesystem::path& folder) {
  const auto free = free_in(folder);
  if (free && free->all >= kMuch && free->inodes >= kManyInodes) fill(folder, kReserve);
}

Reserve::~Reserve() {
  for (const std::filesystem::path& folder : given_up_) fill(folder, kLeast);
}

Bytes Reserve::lent() const {
  return kReserve * given_up_.size();
}

bool Reserve::give_up() {
  const std::size_t before = given_up_.size();
  for (const std::filesystem::path& folder : folders_) {
    const auto free = free_in(folder);
    const bool is_full = free && (free->certain < kReserve || free->inodes < kInodes);
    const bool is_wanted = is_full && ::access((folder / kName).c_str(), F_OK) == 0 &&
                           std::ranges::find(given_up_, folder) == given_up_.end();
    if (is_wanted && remove_tree(folder, kName)) given_up_.push_back(folder);
  }
  return given_up_.size() > before;
}

void Reserve::name_lack(Error& error) const {
  const auto lacking = std::ranges::find_if(folders_, lacks_inodes);
  if (lacking == folders_.end()) return;
  error.what += "; the drive of " + printable(lacking->native()) + " has no inodes left (`df -i`)";
  error.hint = "delete small files there, or evict a dataset";
}

}  // namespace spark::staging
