#include "staging/files/quiet_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "staging/files/link_follower.hpp"
#include "staging/files/times.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

// The fields that is_same_source() compares, of all entries. A folder's times change with temporary files,
// which are entries of their own while they exist.
Digest digest_of(const Entries& entries) {
  Hasher hasher;
  for (const Entry& entry : entries) {
    const std::string_view path = entry.path, target = entry.target;
    hasher.add_number(path.size());
    hasher.add(path);
    hasher.add_number(target.size());
    hasher.add(target);
    hasher.add_number(static_cast<std::uint64_t>(entry.type));
    if (entry.type != EntryType::File) continue;
    add(hasher, identity_of(entry));
  }
  return hasher.digest();
}

bool is_readable(const fs::path& path, const struct statx& info) {
  if (S_ISLNK(info.stx_mode)) return true;
  const bool is_own = info.stx_uid == ::geteuid() && (info.stx_mode & S_IRUSR) != 0;
  return is_own || ::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0 || errno != EACCES;
}

bool is_broken_link(const fs::path& path, const fs::path& root) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  if (error) return false;
  return leads_out(path.lexically_relative(root).native(), target.native()) || !fs::exists(path, error);
}

// Of one entry, for a sum: the order of a folder's entries does not count. Neither does its time: what is
// added to it or removed counts by itself, and a `touch` writes nothing.
std::uint64_t print_of(const std::string& path, mode_t type, std::uint64_t size, std::int64_t mtime_ns) {
  Hasher hasher;
  hasher.add(path);
  hasher.add_number(type);
  hasher.add_number(type == S_IFREG ? size : 0);
  hasher.add_number(type == S_IFDIR ? 0 : static_cast<std::uint64_t>(mtime_ns));
  return hasher.digest().low;
}

std::uint64_t print_of(const Entry& entry) {
  const std::string path = entry.path.empty() ? "" : "/" + std::string(entry.path.view());
  const mode_t type = entry.type == EntryType::File     ? S_IFREG
                      : entry.type == EntryType::Folder ? S_IFDIR
                                                        : S_IFLNK;
  return print_of(path, type, entry.size, entry.mtime_ns);
}

std::uint64_t identity_print(std::uint64_t print, const struct statx& info) {
  Hasher hasher;
  hasher.add_number(print);
  hasher.add_number(info.stx_dev_major);
  hasher.add_number(info.stx_dev_minor);
  hasher.add_number(info.stx_ino);
  hasher.add_number(static_cast<std::uint64_t>(nanoseconds(info.stx_ctime)));
  return hasher.digest().low;
}

std::int64_t sum_of(std::int64_t sum, std::uint64_t print) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + print);
}

void add(TreeTotals& totals, const fs::path& path, const fs::path& root) {
  constexpr std::int64_t kSteps = 60'000'000'000;  // ns; a cluster's servers may have clocks of their own
  struct statx info {};
  const unsigned wanted = STATX_BASIC_STATS | STATX_BTIME;
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, wanted, &info) != 0) return;
  ++totals.entries;
  const std::string below = path == root ? "" : path.native().substr(root.native().size());
  const std::int64_t mtime = nanoseconds(info.stx_mtime), ctime = nanoseconds(info.stx_ctime);
  const std::uint64_t print = print_of(below, info.stx_mode & S_IFMT, info.stx_size, mtime);
  totals.written = sum_of(totals.written, print);
  totals.identity = sum_of(totals.identity, identity_print(print, info));
  totals.changed_ns = std::max({totals.changed_ns, mtime, ctime});
  totals.modified_ns = std::max(totals.modified_ns, mtime);
  totals.oldest_ns = totals.entries == 1 ? ctime : std::min(totals.oldest_ns, ctime);
  if (S_ISREG(info.stx_mode)) {
    totals.bytes += info.stx_size;
    const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
    totals.is_from_earlier |= has_birth && nanoseconds(info.stx_btime) > ctime + kSteps;
  }
  if (totals.unreadable.empty() && !is_readable(path, info)) totals.unreadable = path;
  if (totals.broken_link.empty() && S_ISLNK(info.stx_mode) && path != root && is_broken_link(path, root))
    totals.broken_link = path;
}

}  // namespace

TreeTotals totals_of(const fs::path& path) {
  TreeTotals totals;
  add(totals, path, path);
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return totals;
  fs::recursive_directory_iterator entries(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error))
    add(totals, entries->path(), path);
  return totals;
}

std::int64_t written_of(ManifestReader& manifest) {
  std::uint64_t written = 0;
  while (const auto entry = manifest.next()) written += print_of(*entry);
  return static_cast<std::int64_t>(written);
}

Result<> check_still_complete(const Tree& source, std::int64_t complete_state) {
  const TreeTotals totals = totals_of(source.root());
  if (totals.written == complete_state || totals.changed_ns == complete_state) return {};
  return fail(Errc::Mismatch,
              source.shown("") + " changed since it was found complete: nothing was published",
              "an output with `complete` sends it when it is complete again; otherwise send it then");
}

QuietSource::QuietSource(const Entries& walked) : walked_(digest_of(walked)) {}

Result<> QuietSource::check(const Tree& source, const std::vector<std::string>& exclude, OutsideLinks links,
                            const StopFlag& stop) const {
  if (!walked_) return {};
  auto again = open_tree(source.root());
  if (!again) return again.take_error();
  const auto now = walk_source(*again, exclude, links, stop);
  if (!now) return now.take_error();
  if (digest_of(now->entries) == *walked_) return {};
  return fail(Errc::Mismatch, source.shown("") + " changed while it was read: nothing was published",
              "send it again once it is written completely");
}

}  // namespace spark::staging
