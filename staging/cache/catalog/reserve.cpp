#include "staging/cache/catalog/reserve.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <optional>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::staging {

namespace {

constexpr Bytes kReserve = kMiB, kLeast = kMiB / 8, kMuch = 16 * kMiB;

std::filesystem::path reserve_of(const std::filesystem::path& state_dir) {
  return state_dir / "catalog.reserve";
}

struct Free {
  Bytes all, certain;
};

// None: unknown. Root may use what a file system keeps for root, but not the blocks that ext4 keeps for
// itself.
std::optional<Free> free_in(const std::filesystem::path& state_dir) {
  struct statvfs space {};
  if (::statvfs(state_dir.c_str(), &space) != 0) return std::nullopt;
  return Free{Bytes{space.f_bfree} * space.f_frsize, Bytes{space.f_bavail} * space.f_frsize};
}

// An earlier call may have been interrupted before it had its space.
void fill_reserve(const std::filesystem::path& file, Bytes least) {
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  for (Bytes size = kReserve; made && size >= least; size /= 2) {
    if (::fallocate(made.get(), 0, 0, static_cast<off_t>(size)) == 0) return;
    if (::ftruncate(made.get(), 0) != 0) break;
  }
  if (made) ::unlink(file.c_str());
}

}  // namespace

void make_reserve(const std::filesystem::path& state_dir) {
  if (const auto free = free_in(state_dir); free && free->all >= kMuch)
    fill_reserve(reserve_of(state_dir), kReserve);
}

bool give_up_reserve(const std::filesystem::path& state_dir) {
  const auto free = free_in(state_dir);
  return free && free->certain < kReserve && ::unlink(reserve_of(state_dir).c_str()) == 0;
}

void take_back_reserve(const std::filesystem::path& state_dir) {
  fill_reserve(reserve_of(state_dir), kLeast);
}

}  // namespace spark::staging
