#include "staging/view/view_map.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <span>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr std::uint64_t kMostUnits = std::uint64_t{1} << 32U;

void put(std::span<char> text, const std::string& from) {
  const std::size_t length = std::min(from.size(), text.size() - 1);
  std::memcpy(text.data(), from.data(), length);
  text[length] = '\0';
}

}  // namespace

std::string view_name(const std::string& dataset, std::uint64_t number) {
  return folder_name(dataset) + "." + std::to_string(number);
}

// All of it must stay the same while any process of root's runs: no choice depends on what is in a folder.
ViewPlace view_place(const SystemRoot& root, const std::filesystem::path& state_dir, std::string name) {
  ViewPlace place{state_dir / "live", std::move(name)};
  const std::filesystem::path run = root / "run";
  struct stat owner {};
  struct statfs kind {};
  const bool is_of_root =
      ::geteuid() == 0 && ::stat(run.c_str(), &owner) == 0 && owner.st_uid == 0 && (owner.st_mode & 022) == 0;
  if (!is_of_root || ::statfs(run.c_str(), &kind) != 0 || kind.f_type != TMPFS_MAGIC) return place;
  place.memory = run / "spark-stage-live" / to_hex(digest_of(place.folder.native()));
  return place;
}

Result<std::unique_ptr<ViewMap>> ViewMap::open(const ViewPlace& place) {
  const std::filesystem::path path = place.map();
  const std::string shown = printable(path.native());
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file) return fail_errno(errno, "opening " + shown);
  if (::fstat(file.get(), &info) != 0) return fail_errno(errno, "reading " + shown);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes < sizeof(Header)) return fail(Errc::NotFound, "reading " + shown + ": it is of another version");
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return fail_errno(errno, "mapping " + shown);
  const Header& header = *static_cast<Header*>(mapped);
  std::unique_ptr<ViewMap> map(new ViewMap(std::move(file), mapped, bytes, header.units));
  if (header.magic == Header::right_magic() && bytes == Header::bytes_with(header.units)) return map;
  return fail(Errc::NotFound, "reading " + shown + ": it is of another version");
}

Result<std::unique_ptr<ViewMap>> ViewMap::make(const ViewPlace& place, const Digest& set, std::uint64_t units,
                                               const std::string& data) {
  if (auto there = open(place)) {
    ViewMap& old = **there;
    if (old.set() != set || old.units() != units) old.set_failed(kHasChanged);
    if (old.is_published()) return fail(Errc::Refused, "its copy is complete");
    if (old.has_failed()) return fail(Errc::Mismatch, old.reason());
    old.withdraw({0, old.units()});
    put(old.header().data, data);
    ++old.header().epoch;  // after `data`, or a reader may keep the folder of before
    old.wake();
    return there;
  }
  if (!place.memory.empty()) {
    ::mkdir(place.memory.parent_path().c_str(), 0700);
    ::mkdir(place.memory.c_str(), 0700);
  }
  const std::filesystem::path path = place.map(), fresh = path.native() + ".new";
  const std::string making = "making " + printable(path.native());
  if (units > kMostUnits || data.size() >= sizeof(Text))
    return fail(Errc::Unsupported, making + ": the set is too large for a live view");
  const auto failed = [&](int number) {
    const auto why = fail_errno(number, making);
    ::unlink(fresh.c_str());
    return why;
  };
  ::unlink(fresh.c_str());
  UniqueFd file(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return failed(errno);
  const std::size_t bytes = Header::bytes_with(units);
  if (const int full = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); full != 0)
    return failed(full);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return failed(errno);
  std::unique_ptr<ViewMap> made(new ViewMap(std::move(file), mapped, bytes, units));
  Header& header = made->header();
  header.magic = Header::right_magic();
  header.units = units;
  header.set = set;
  put(header.data, data);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed(errno);
  return made;
}

void ViewMap::withdraw_all(const SystemRoot& root, const std::filesystem::path& state_dir,
                           const std::string& dataset, std::uint64_t own) {
  const ViewPlace mine = view_place(root, state_dir, view_name(dataset, own));
  for (const std::filesystem::path& at : list_folder(mine.maps())) {
    const std::filesystem::path name = at.stem();
    if (at.extension() != ".view" || name.stem() != folder_name(dataset)) continue;
    const auto map = open({mine.folder, name, mine.memory});
    if (!map || (*map)->is_published()) continue;
    if (name != mine.name) (*map)->set_failed("it is staged again, without this live view");
    (*map)->withdraw({0, (*map)->units()});
  }
}

void ViewMap::remove(const ViewPlace& place) {
  std::error_code error;
  for (const auto& path : {place.map(), place.entries(), place.note()}) std::filesystem::remove(path, error);
}

ViewMap::~ViewMap() {
  ::munmap(mapped_, bytes_);
}

void ViewMap::set_here(const UnitRange& units) {
  for (std::uint64_t unit = units.first; unit < units.first + units.count; ++unit) {
    UnitState now = UnitState::Missing;
    state(unit).compare_exchange_strong(now, UnitState::Here);
  }
  wake();
}

void ViewMap::withdraw(const UnitRange& units, UnitState to) {
  for (std::uint64_t unit = units.first; unit < units.first + units.count; ++unit) {
    UnitState now = UnitState::Here;
    if (to == UnitState::Failed)
      state(unit) = to;
    else
      state(unit).compare_exchange_strong(now, to);
  }
  ++header().epoch;
  wake();
}

void ViewMap::set_published(const std::string& path) {
  put(header().published, path);
  header().phase = Phase::Published;
  ++header().epoch;  // units that are set from now on are of that folder
  wake();
}

void ViewMap::set_failed(const std::string& reason) {
  Phase now = Phase::Copying;
  if (header().phase != now) return;
  put(header().reason, reason);
  header().phase.compare_exchange_strong(now, Phase::Failed);
  wake();
}

void ViewMap::want(std::uint64_t unit, bool is_small) {
  Header::Wanted& wanted = header().wanted[is_small ? 1 : 0];
  wanted.units[wanted.asked++ % kWanted] = unit + 1;
}

std::optional<std::uint64_t> ViewMap::take_wanted(bool is_small) {
  Header::Wanted& wanted = header().wanted[is_small ? 1 : 0];
  for (;;) {
    std::uint64_t taken = wanted.taken;
    const std::uint64_t asked = wanted.asked;
    if (taken == asked) return std::nullopt;
    const std::uint64_t next = asked - taken > kWanted ? asked - kWanted : taken;
    if (!wanted.taken.compare_exchange_strong(taken, next + 1)) continue;
    const std::uint64_t unit = wanted.units[next % kWanted].exchange(0);
    if (unit != 0 && unit <= units_ && state(unit - 1) == UnitState::Missing) return unit - 1;
  }
}

void ViewMap::wait(std::uint32_t changes, std::chrono::milliseconds most) const {
  Header& head = header();
  ++head.waiters;
  const timespec limit{most.count() / 1000, most.count() % 1000 * 1'000'000};
  ::syscall(SYS_futex, &head.changes, FUTEX_WAIT, changes, &limit, nullptr, 0);
  --head.waiters;
}

void ViewMap::wake() {
  Header& head = header();
  ++head.changes;
  if (head.waiters > 0) ::syscall(SYS_futex, &head.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace spark::staging
