#include "staging/files/quiet_source.hpp"

#include "staging/files/walk.hpp"

namespace spark::staging {
namespace {

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
    hasher.add_number(entry.size);
    hasher.add_number(static_cast<std::uint64_t>(entry.mtime_ns));
    hasher.add_number(static_cast<std::uint64_t>(entry.ctime_ns));
    hasher.add_number(entry.inode);
  }
  return hasher.digest();
}

}  // namespace

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
