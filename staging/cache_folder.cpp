#include "staging/cache_folder.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/names.hpp"
#include "staging/tree.hpp"

namespace spark::staging {
namespace {

constexpr char kIdFile[] = ".spark-stage-cache";

// Empty if it can't be listed.
std::vector<std::string> names_of(const std::filesystem::path& folder) {
  auto tree = tree_in(folder, "");
  if (!tree) return {};
  auto names = names_in(std::move(tree->folder), printable(folder.native()));
  if (!names) return {};
  std::ranges::sort(*names);
  return std::move(*names);
}

Result<> make_folder(const std::filesystem::path& folder, unsigned mode) {
  std::error_code error;
  std::filesystem::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), mode) != 0 && errno != EEXIST) {
    return fail_errno(errno, "making the cache folder " + printable(folder.native()));
  }
  return {};
}

}  // namespace

std::filesystem::path CacheFolder::partial(const std::string& dataset) const {
  return partials() / folder_name(dataset);
}

std::filesystem::path CacheFolder::link(const std::string& dataset) const {
  return path_ / folder_name(dataset);
}

Destination CacheFolder::place(const std::string& dataset, std::uint64_t generation) const {
  return {data() / folder_name(dataset), std::to_string(generation)};
}

Result<> CacheFolder::make() const {
  for (const auto& folder : {path_, data()}) {
    if (auto made = make_folder(folder, 0755); !made) return made;
  }
  for (const auto& folder : {partials(), trash()}) {
    if (auto made = make_folder(folder, 0700); !made) return made;
  }
  return {};
}

Result<std::string> CacheFolder::id() const {
  auto id = read_line_file(path_ / kIdFile);
  if (!id && id.error().kind == Errc::NotFound) return std::string();
  return id;
}

Result<std::string> CacheFolder::make_id() const {
  Digest random;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    return fail_errno(errno, "making a cache identity");
  const std::string id = to_hex(random);
  if (auto written = write_file_atomically(path_ / kIdFile, id + "\n"); !written) {
    return tl::unexpected<Error>(std::move(written.error()));
  }
  return id;
}

std::vector<std::filesystem::path> CacheFolder::partial_areas() const {
  std::vector<std::filesystem::path> areas;
  for (const std::string& name : names_of(partials())) areas.push_back(partials() / name);
  return areas;
}

std::vector<std::string> CacheFolder::keys() const {
  return names_of(data());
}

std::vector<std::uint64_t> CacheFolder::generations(const std::string& key) const {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names_of(data() / key)) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && end == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::filesystem::path CacheFolder::link_target(const std::string& dataset, std::uint64_t generation) const {
  return std::filesystem::path("data") / folder_name(dataset) / std::to_string(generation);
}

Result<> CacheFolder::point_link(const std::string& dataset, std::uint64_t generation) const {
  const std::filesystem::path target = link_target(dataset, generation), name = link(dataset);
  std::error_code error;
  if (std::filesystem::read_symlink(name, error) == target) return {};
  const std::filesystem::path fresh = path_ / companion_name(folder_name(dataset), ".link");
  ::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), name.c_str()) != 0) {
    return fail_errno(errno, "pointing the link " + printable(name.native()) + " at generation " +
                                 std::to_string(generation));
  }
  return flush_folder(path_);
}

Result<> CacheFolder::drop_link(const std::string& dataset, std::uint64_t generation) const {
  const std::filesystem::path name = link(dataset);
  std::error_code error;
  if (std::filesystem::read_symlink(name, error) != link_target(dataset, generation)) return {};
  if (::unlink(name.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(errno, "removing the link " + printable(name.native()));
  }
  return {};
}

Result<> CacheFolder::move_to_trash(const std::string& dataset, std::uint64_t generation) const {
  const Destination from = place(dataset, generation);
  const std::filesystem::path to = trash() / (folder_name(dataset) + "." + from.name);
  if (::rename(from.path().c_str(), to.c_str()) != 0 && errno != ENOENT) {
    return fail_errno(errno, "moving away " + printable(from.path().native()));
  }
  // Only then: a generation without a manifest would be nobody's.
  if (::access(from.folder.c_str(), F_OK) != 0) return {};
  if (auto flushed = flush_folder(from.folder); !flushed) return flushed;
  if (::unlink(from.manifest().c_str()) != 0 && errno != ENOENT) {
    return fail_errno(errno, "deleting " + printable(from.manifest().native()));
  }
  if (auto flushed = flush_folder(from.folder); !flushed) return flushed;
  ::rmdir(from.folder.c_str());  // the last generation's; not empty is no error
  return {};
}

Result<> CacheFolder::empty_trash() const {
  for (const std::string& name : names_of(trash())) {
    if (auto removed = remove_tree(trash(), name); !removed) return removed;
  }
  return {};
}

}  // namespace spark::staging
