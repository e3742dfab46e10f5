#include "staging/copy/links.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <span>

#include "staging/copy/resume.hpp"
#include "staging/files/io/direct_io.hpp"
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

// Compared with the known hash, since nothing else reads the new file.
Result<Digest> copy_content(int from, int to, Bytes size, const std::string& shown) {
  const IoBuffer buffer(kHashPiece);
  std::vector<Digest> digests;
  for (std::uint64_t piece = 0; piece < piece_count(size); ++piece) {
    const Bytes bytes = piece_bytes(size, piece);
    const ReadOutcome read = read_at(from, {}, buffer.data(), bytes, piece * kHashPiece);
    if (read.error != 0) return fail_errno(read.error, "reading " + shown);
    const int failed = write_at(to, {}, buffer.data(), read.bytes, piece * kHashPiece);
    if (failed != 0) return fail_errno(failed, "writing " + shown);
    digests.push_back(digest_of(std::span(buffer.data(), read.bytes)));
  }
  return digest_of_pieces(digests);
}

// The further names of hard-linked files. ext4 takes 65,000 names of a file, with those in other generations.
class HardLinks {
 public:
  explicit HardLinks(const Tree& copy) : copy_(copy) {}

  Result<> make(const Entry& first, Entry& entry, const Parent& parent) {
    auto path = std::move(entry.path), link_to = std::move(entry.link_to);
    entry = first;
    entry.path = std::move(path);
    entry.link_to = std::move(link_to);
    const auto apart = apart_.find(first.path.view());
    const Parent from = open_parent(copy_, apart == apart_.end() ? first.path.view() : apart->second);
    if (from.folder &&
        ::linkat(from.folder.get(), from.name.c_str(), parent.folder.get(), parent.name.c_str(), 0) == 0)
      return {};
    if (!from.folder || errno != EMLINK) return fail_errno(errno, "linking " + copy_.shown(entry.path));
    if (auto made = make_apart(first, entry, from, parent); !made) return made;
    entry.is_apart = true;
    apart_[first.path.view()] = entry.path.view();
    return {};
  }

 private:
  const Tree& copy_;
  std::map<std::string_view, std::string_view> apart_;  // first name → the name that takes further links

  Result<> make_apart(const Entry& first, const Entry& entry, const Parent& from, const Parent& to) const {
    const std::string shown = copy_.shown(entry.path);
    constexpr int kSafely = O_NOFOLLOW | O_CLOEXEC;
    const UniqueFd original(::openat(from.folder.get(), from.name.c_str(), O_RDONLY | kSafely));
    const UniqueFd made(
        ::openat(to.folder.get(), to.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | kSafely, 0600));
    if (!original || !made) return fail_errno(errno, "making " + shown);
    const auto digest = copy_content(original.get(), made.get(), entry.size, shown);
    if (!digest) return digest.take_error();
    if (*digest != first.hash) return fail(Errc::Mismatch, copy_.shown(first.path) + " has other content");
    if (auto put = put_metadata(made.get(), original.get(), entry, {shown, copy_.shown(first.path), false});
        !put)
      return put.take_error();
    if (::fsync(made.get()) != 0) return fail_errno(errno, "flushing " + shown);
    return {};
  }
};

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
  HardLinks links(copy);
  for (Entry& entry : entries) {
    if (entry.type == EntryType::Folder || is_content(entry)) continue;
    if (stop) return fail(Errc::Cancelled, "copying " + source.shown("") + ": interrupted");
    const Parent parent = open_parent(copy, entry.path);
    if (!parent.folder) return fail_errno(errno, "opening the folder of " + copy.shown(entry.path));
    auto made = entry.type == EntryType::Symlink
                    ? make_symlink(copy, entry, parent)
                    : links.make(entries[index_of(entries, entry.link_to)], entry, parent);
    if (!made) return made;
  }
  return {};
}

}  // namespace spark::staging
