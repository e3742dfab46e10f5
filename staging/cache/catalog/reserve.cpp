#include "staging/cache/catalog/reserve.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::staging {

void tend_reserve(const std::filesystem::path& state_dir) {
  constexpr Bytes kReserve = kMiB, kMuch = 16 * kMiB;
  struct statvfs space {};
  if (::statvfs(state_dir.c_str(), &space) != 0) return;
  const Bytes free = Bytes{space.f_bfree} * space.f_frsize;  // root may use what is kept for it
  const auto file = state_dir / "catalog.reserve";
  if (free < kReserve) ::unlink(file.c_str());
  if (free < kMuch) return;
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made && ::fallocate(made.get(), 0, 0, kReserve) != 0) ::unlink(file.c_str());
}

}  // namespace spark::staging
