#include "tests/histories/copies/world/delivery.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/host/files.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

struct CopiedFile {
  ino_t inode = 0;
  std::string bytes, note;
};

std::string note_of(const fs::path& file) {
  char value[64];
  const ssize_t length = ::lgetxattr(file.c_str(), "user.note", value, sizeof value);
  return length < 0 ? "" : std::string(value, static_cast<std::size_t>(length));
}

std::map<std::string, CopiedFile> files_below(const fs::path& folder) {
  std::map<std::string, CopiedFile> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    CopiedFile file{info.st_ino, bytes_of(entry.path()), note_of(entry.path())};
    files[entry.path().lexically_relative(folder)] = std::move(file);
  }
  return files;
}

class Comparison {
 public:
  Comparison(const Scene& scene, const Delivery& delivery, const Source& source)
      : scene_(scene), delivery_(delivery), source_(source), files_(files_below(delivery.path)) {}

  // The first difference.
  std::optional<Violation> go() {
    compare();
    return found_;
  }

 private:
  void compare() {
    std::error_code error;
    if (!fs::is_directory(delivery_.path, error)) return no_copy();
    for (const std::string& path : source_.paths_ever()) {
      if (files_.contains(path)) {
        check_file(path, files_.at(path));
      } else if (!source_.was_absent(path, delivery_.from, delivery_.to)) {
        missing(path);
      }
    }
    for (const auto& [path, file] : files_) {
      if (!source_.paths_ever().contains(path)) foreign(path);
    }
  }

  void violate(const std::string& oracle, const std::string& what) {
    if (!found_)
      found_ = Violation{oracle, delivery_.by + " of " + delivery_.dataset + " succeeded, but " + what};
  }

  // Without a lease, a newer copy may replace it as soon as the request has ended.
  void no_copy() {
    const std::uint64_t generation = std::strtoull(delivery_.path.filename().c_str(), nullptr, 10);
    if (delivery_.is_leased || delivery_.by == "copy" || newest_generation(delivery_.dataset) <= generation)
      violate("no-such-copy", "there is nothing at its path");
  }

  // A source that is not mounted is not known to be another one, unless it was staged before.
  bool is_excused() const { return !delivery_.was_mounted && !delivery_.was_known_before; }

  std::string mount_oracle(bool is_empty) const {
    if (source_.place().is_volume) return is_empty ? "volume-not-there" : "other-volume";
    return is_empty ? "empty-source" : "other-file-system";
  }

  void missing(const std::string& path) {
    if (is_excused()) return;
    if (!delivery_.was_mounted)
      return violate(mount_oracle(files_.empty()), "its source was not mounted, and " + path + " is missing");
    violate("missing-file", path + " is missing");
  }

  void foreign(const std::string& path) {
    if (is_excused()) return;
    violate(delivery_.was_mounted ? "foreign-file" : mount_oracle(false), path + " is not in its source");
  }

  void check_file(const std::string& path, const CopiedFile& file) {
    const auto right = source_.between(path, delivery_.from, delivery_.to);
    const auto same =
        std::ranges::find_if(right, [&](const SourceFile& one) { return *one.content == file.bytes; });
    if (same != right.end()) return check_note(path, file, right);
    if (const Damage* damage = scene_.rot.of(file.inode)) return damaged(path, *damage);
    if (scene_.rot.is_damaged_content(file.bytes))
      return violate("damage-copied", path + " has damaged bytes, copied from another file");
    if (is_excused()) return;
    const auto ever = source_.ever(path);
    const bool is_old =
        std::ranges::any_of(ever, [&](const SourceFile& one) { return *one.content == file.bytes; });
    if (!is_old) return violate("foreign-bytes", path + " has bytes that it never had in the source");
    violate(right.empty() ? "removed-file" : "stale-bytes", path + " has bytes of an earlier time");
  }

  void check_note(const std::string& path, const CopiedFile& file, const std::vector<SourceFile>& right) {
    if (delivery_.may_lack_attributes) return;
    const auto same =
        std::ranges::find_if(right, [&](const SourceFile& one) { return one.note == file.note; });
    if (same == right.end())
      violate("attributes-lost", path + " has lost its attributes, and no warning says so");
  }

  // Damage that nobody has read yet may be served.
  void damaged(const std::string& path, const Damage& damage) {
    const bool is_known = damage.known_since && *damage.known_since <= delivery_.from;
    if (delivery_.is_verified && damage.since <= delivery_.from) {
      violate("verified-copy-damaged", path + " is damaged, although the copy was to be verified");
    } else if (is_known && damage.was_forgotten) {
      violate("damage-forgotten",
              path + " is damaged; a verification had found that before the catalog was lost");
    } else if (is_known) {
      violate("damage-served", path + " is damaged, and a verification had found that");
    }
  }

  const Scene& scene_;
  const Delivery& delivery_;
  const Source& source_;
  std::map<std::string, CopiedFile> files_;
  std::optional<Violation> found_;
};

}  // namespace

void check_delivery(Scene& scene, const Delivery& delivery) {
  const Source* source = scene.source(delivery.dataset);
  if (source == nullptr) return;
  // A request that joined an earlier one may have got what was there when that one began: no harm of another
  // kind is in it.
  Delivery earliest = delivery;
  earliest.from = delivery.joined.from;
  earliest.was_mounted = delivery.joined.was_mounted;
  if (const auto found = Comparison(scene, earliest, *source).go()) {
    static const std::set<std::string> kOfMounts{"empty-source", "other-file-system", "volume-not-there",
                                                 "other-volume"};
    return kOfMounts.contains(found->oracle) ? scene.note(Rarity::Usual, found->oracle, found->what)
                                             : scene.violate(found->oracle, found->what);
  }
  const auto older = Comparison(scene, delivery, *source).go();
  if (older) scene.note(Rarity::Usual, "older-than-request", older->what + ", as before its request began");
}

}  // namespace spark::histories::copies
