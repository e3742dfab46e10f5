#include "staging/outputs/destination_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/files/tree.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {

Result<DestinationFolder> make_destination_folder(const std::filesystem::path& mount_point,
                                                  const std::string& folder) {
  const auto tree = open_tree(mount_point);
  if (!tree) return tree.take_error();
  std::string at;
  UniqueFd folder_at = open_beneath(*tree, at, O_RDONLY | O_DIRECTORY);
  if (!folder_at) return fail_errno(errno, "opening folder " + tree->shown(at));
  for (const std::string& part : split(folder, '/')) {
    if (part.empty() || part == ".") continue;
    const std::string next = join_path(at, part);
    const std::string shown = tree->shown(next);
    if (::mkdirat(folder_at.get(), part.c_str(), 0755) == 0) {
      if (::fsync(folder_at.get()) != 0) return fail_errno(errno, "flushing folder " + tree->shown(at));
    } else if (errno != EEXIST) {
      return fail_errno(errno, "making folder " + shown,
                        errno == EACCES ? "create it, and make the sending user its owner" : "");
    }
    UniqueFd made = open_beneath(*tree, next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!made && errno == EACCES) return fail_errno(errno, "opening folder " + shown);
    if (!made) {
      return fail(Errc::Invalid, shown + " is no folder of the volume's own file system",
                  "choose another destination: symbolic links are not followed there");
    }
    const auto published = manifest_of_published({held_path(folder_at), part});
    if (published && *published) {
      return fail(Errc::Refused, shown + " is itself a copy that was published there",
                  "choose a destination outside of it: both would be damaged for `spark-stage verify`");
    }
    at = next;
    folder_at = std::move(made);
  }
  std::filesystem::path path = held_path(folder_at);
  return DestinationFolder{std::move(folder_at), std::move(path)};
}

Result<std::vector<std::string>> remove_unfinished_copies(const std::filesystem::path& folder,
                                                          const std::string& name) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  std::vector<std::string> unproven;
  const std::filesystem::path own = Destination{folder, name}.partial().filename();
  for (const std::string& one : *names) {
    if (one == own || !one.starts_with('.') || !one.ends_with(kPartialSuffix)) continue;
    auto area = PartialArea::try_open(folder / one);
    if (!area && stays_unproven(folder / one, area.error())) unproven.push_back(area.error().message());
    if (!area) continue;
    std::error_code error;
    // A manifest proves all the data; an earlier copy may be between two steps of its replacement; a state is
    // that of shards being joined.
    bool is_needed = false;
    for (const auto& path : {area->manifest(), area->replaced(), area->folder() / "state"})
      is_needed = is_needed || std::filesystem::exists(path, error) || error;
    if (is_needed) continue;
    if (auto cleared = area->clear(); !cleared) return cleared.take_error();
  }
  return unproven;
}

}  // namespace spark::staging
