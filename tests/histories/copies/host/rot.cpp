#include "tests/histories/copies/host/rot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.hpp"
#include "tests/histories/copies/host/files.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

}  // namespace

void Rot::flip(const fs::path& file, std::uint32_t where, SteadyTime now) {
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_size == 0) return;
  const auto size = static_cast<std::size_t>(info.st_size);
  const auto at = static_cast<off_t>(where % size);
  const std::string before = bytes_of(file);
  char byte = 0;
  if (::pread(fd.get(), &byte, 1, at) != 1) return;
  byte = static_cast<char>(byte ^ 1);
  if (::pwrite(fd.get(), &byte, 1, at) != 1) return;
  const timespec times[2] = {info.st_atim, info.st_mtim};
  if (::futimens(fd.get(), times) != 0) throw_errno("putting back the time of " + file.native());
  // A second bit makes no new damage: what the product knows of the file stays true.
  Damage& damage = damaged_.try_emplace(info.st_ino, Damage{now, {}, false, {}, before}).first->second;
  damage.bytes = bytes_of(file);
  if (damage.bytes == damage.right) damaged_.erase(info.st_ino);  // the same bit, twice
}

const Damage* Rot::of(ino_t inode) const {
  const auto found = damaged_.find(inode);
  return found == damaged_.end() ? nullptr : &found->second;
}

bool Rot::is_damaged_content(const std::string& bytes) const {
  return std::ranges::any_of(damaged_, [&](const auto& one) { return one.second.bytes == bytes; });
}

std::set<ino_t> Rot::below(const fs::path& folder, SteadyTime before) const {
  std::set<ino_t> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const Damage* damage = of(info.st_ino);
    if (damage != nullptr && damage->since < before) found.insert(info.st_ino);
  }
  return found;
}

void Rot::learn(const std::set<ino_t>& files, SteadyTime now) {
  for (const ino_t file : files) {
    Damage& damage = damaged_.at(file);
    if (!damage.known_since) damage.known_since = now;
  }
}

void Rot::forget() {
  for (auto& [inode, damage] : damaged_) damage.was_forgotten = damage.was_forgotten || damage.known_since;
}

}  // namespace spark::histories::copies
