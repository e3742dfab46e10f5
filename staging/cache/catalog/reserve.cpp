#include "staging/cache/catalog/reserve.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <optional>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::staging {

namespace {

constexpr Bytes kReserve = kMiB, kMuch = 16 * kMiB;

std::filesystem::path reserve_of(const std::filesystem::path& state_dir) {
  return state_dir / "catalog.reserve";
}

// None: unknown. Root may use what is kept for it.
std::optional<Bytes> free_in(const std::filesystem::path& state_dir) {
  struct statvfs space {};
  if (::statvfs(state_dir.c_str(), &space) != 0) return std::nullopt;
  return Bytes{space.f_bfree} * space.f_frsize;
}

}  // namespace

// An earlier call may have been interrupted before it had its space.
void make_reserve(const std::filesystem::path& state_dir) {
  if (free_in(state_dir).value_or(0) < kMuch) return;
  const auto file = reserve_of(state_dir);
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made && ::fallocate(made.get(), 0, 0, kReserve) != 0) ::unlink(file.c_str());
}

void give_up_reserve(const std::filesystem::path& state_dir) {
  if (free_in(state_dir).value_or(kReserve) < kReserve) ::unlink(reserve_of(state_dir).c_str());
}

}  // namespace spark::staging
