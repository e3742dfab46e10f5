#include "staging/copy/links.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "staging/copy/resume.hpp"
#include "staging/files/metadata.hpp"

namespace spark::staging {
namespace {

Result<> make_symlink(const Tree& copy, const Entry& entry, const Parent& parent) {
  const std::string shown = copy.shown(entry.path);
  if (::symlinkat(entry.target.c_str(), parent.folder.get(), parent.name.c_str()) != 0) {
    return fail_errno(errno, "making symlink " + shown);
  }
  return put_symlink_metadata(parent.folder.get(), parent.name, entry, shown);
}

Result<> make_hard_link(const Tree& copy, const Entry& first, Entry& entry, const Parent& parent) {
  const Parent from = open_parent(copy, first.path);
  if (!from.folder ||
      ::linkat(from.folder.get(), from.name.c_str(), parent.folder.get(), parent.name.c_str(), 0) != 0) {
    return fail_errno(errno, "linking " + copy.shown(entry.path));
  }
  auto path = std::move(entry.path), link_to = std::move(entry.link_to);
  entry = first;
  entry.path = std::move(path);
  entry.link_to = std::move(link_to);
  return {};
}

}  // namespace

Result<> make_folders(const Tree& copy, const Entries& entries) {
  for (const Entry& entry : entries) {
    if (entry.type != EntryType::Folder) continue;
    const Parent parent = open_parent(copy, entry.path);
    if (!parent.folder ||
        (::mkdirat(parent.folder.get(), parent.name.c_str(), 0700) != 0 && errno != EEXIST)) {
      return fail_errno(errno, "making folder " + copy.shown(entry.path));
    }
  }
  return {};
}

Result<> make_links(const Tree& source, const Tree& copy, Entries& entries, const StopFlag& stop) {
  for (Entry& entry : entries) {
    if (entry.type == EntryType::Folder || is_content(entry)) continue;
    if (stop) return fail(Errc::Cancelled, "copying " + source.shown("") + ": interrupted");
    const Parent parent = open_parent(copy, entry.path);
    if (!parent.folder) return fail_errno(errno, "opening the folder of " + copy.shown(entry.path));
    auto made = entry.type == EntryType::Symlink
                    ? make_symlink(copy, entry, parent)
                    : make_hard_link(copy, entries[index_of(entries, entry.link_to)], entry, parent);
    if (!made) return made;
  }
  return {};
}

}  // namespace spark::staging
