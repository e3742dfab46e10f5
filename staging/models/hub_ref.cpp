// The file that names a snapshot in the copy of a model.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "staging/files/metadata.hpp"
#include "staging/models/hub_cache.hpp"

namespace spark::staging {

Result<> write_ref(const Tree& copy, Entries& entries, std::string_view path, const std::string& commit) {
  const auto entry = std::ranges::lower_bound(entries, path, {},
                                              [](const Entry& one) -> std::string_view { return one.path; });
  if (entry == entries.end() || entry->path != path) return {};
  Hasher hasher;
  hasher.add(std::string_view(commit));
  const Digest hash = hasher.digest();
  if (entry->hash == hash) return {};
  const std::string shown = copy.shown(path);
  const Parent parent = open_parent(copy, path);
  if (!parent.folder || ::unlinkat(parent.folder.get(), parent.name.c_str(), 0) != 0)
    return fail_errno(errno, "replacing " + shown);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(::openat(parent.folder.get(), parent.name.c_str(), flags, 0600));
  if (!file) return fail_errno(errno, "creating " + shown);
  if (::write(file.get(), commit.data(), commit.size()) != static_cast<ssize_t>(commit.size()))
    return fail_errno(errno, "writing " + shown);
  entry->size = entry->allocated = commit.size();
  entry->hash = hash;
  if (auto put = put_plain_metadata(file.get(), *entry, shown); !put) return put;
  const std::string_view above = path.substr(0, path.rfind('/'));
  const UniqueFd folder = open_beneath(copy, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (::fsync(file.get()) != 0 || !folder || ::fsync(folder.get()) != 0)
    return fail_errno(errno, "flushing " + shown);
  return {};
}

}  // namespace spark::staging
