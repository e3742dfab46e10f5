// A copy as a file system while it is made: served by a process that the daemon starts and supervises.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/child.hpp"
#include "base/text.hpp"
#include "daemon/mounts/served_copies.hpp"
#include "daemon/mounts/table.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/names.hpp"
#include "staging/view/fuse/fuse_session.hpp"

namespace spark::workers {
namespace {

constexpr unsigned kEntered = 0711;  // by name, as the other folders with copies

struct Place {
  std::string dataset;
  std::filesystem::path views;   // in the cache: the folder with the mount points
  std::filesystem::path folder;  // the mount point
  staging::ViewPlace map;
};

// Where it is mounted, or will be: an earlier daemon may have had another cache.
Place place_of_key(const json::object& request, const std::string& key) {
  const json::object& cache = *get_object(request, "cache");
  Place place;
  place.dataset = get_string(request, "dataset").value_or("");
  place.views = std::filesystem::path(get_string(cache, "path").value_or("")) / ".live";
  place.map = staging::view_place_of_key(SystemRoot{}, get_string(cache, "state_dir").value_or(""), key);
  const auto mounted = read_file(place.map.mount());
  place.folder = mounted ? std::filesystem::path(*mounted) : place.views / key;
  return place;
}

Result<Place> place_of(const json::object& request) {
  if (get_object(request, "cache") == nullptr)
    return fail(Errc::Invalid, "live view: no cache in the request");
  return place_of_key(request, staging::folder_name(get_string(request, "dataset").value_or("")));
}

// The map of a newer set has replaced that of this view, which failed then, or was published.
Result<> set_failed(const Place& place, const json::object& request) {
  const auto map = staging::ViewMap::open(place.map);
  if (!map) return fail(map.error());
  if (const auto set = get_string(request, "set"); set && *set != staging::to_hex((*map)->set())) return {};
  (*map)->set_failed(get_string(request, "reason").value_or("the live view has ended"));
  return {};
}

}  // namespace

// {"cache", "dataset", "taken_over", "set": of the view that is taken over} and the connection as kInherited
// →
// {} once no program uses the view. Progress: {"folder", "set", "can_resend"}, once it answers.
Result<json::object> serve_view_verb(const json::object& request, const ProgressLine& progress) {
  auto place = place_of(request);
  if (!place) return place.take_error();
  const UniqueFd device(kInherited);
  const auto map = staging::ViewMap::open(place->map);
  if (!map) return map.take_error();
  const std::string set = staging::to_hex((*map)->set());
  // A later staging has another map under this name, while files of the earlier view are still open.
  if (const std::string wanted = get_string(request, "set").value_or(""); !wanted.empty() && wanted != set)
    return fail(Errc::NotFound, "the dataset has been staged again since the live view began");
  const auto tree = staging::ViewTree::read(place->map.entries((*map)->set()));
  if (!tree) return tree.take_error();
  const bool is_taken_over = get_bool(request, "taken_over").value_or(false);
  if (!is_taken_over) {
    place->folder = place->views / place->map.key;
    const auto noted = write_file_atomically(place->map.mount(), place->folder.native());
    if (!noted) return fail(noted.error());
    ::mkdir(place->views.c_str(), kEntered);
    ::mkdir(place->folder.c_str(), kEntered);
    const auto mounted = staging::mount_fuse(device, place->folder, staging::encode_name(place->dataset));
    if (!mounted) return mounted.take_error();
  }
  const auto begun = [&](bool can_resend) {
    progress({{"folder", place->folder.native()}, {"set", set}, {"can_resend", can_resend}});
  };
  return staging::serve_fuse({*tree, **map, device.get(), is_taken_over, begun}).map([] {
    return json::object{};
  });
}

// {"cache", "dataset", "set", "reason"} → {}. What is missing will not come.
Result<json::object> fail_view_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  return set_failed(*place, request).map([] { return json::object{}; });
}

// {"cache", "dataset", "copy"} → {}. Mounts the published copy on top of the view.
Result<json::object> show_copy_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  const std::string copy = get_string(request, "copy").value_or("");
  const char* folder = place->folder.c_str();
  const auto table = mounts::read_mount_table(SystemRoot{});
  const mounts::Mount* top = table ? mounts::mounted_at(*table, place->folder.native()) : nullptr;
  if (top == nullptr)
    return fail(Errc::NotFound, "no live view is mounted on " + printable(place->folder.native()));
  if (top->type != staging::kFuseType) return json::object{};  // an earlier daemon did it
  const std::string doing =
      "mounting the copy " + printable(copy) + " on " + printable(place->folder.native());
  if (::mount(copy.c_str(), folder, nullptr, MS_BIND, nullptr) != 0) return fail_errno(errno, doing);
  constexpr unsigned long kFlags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (::mount(nullptr, folder, nullptr, kFlags, nullptr) == 0) return json::object{};
  const int failed = errno;
  ::umount2(folder, MNT_DETACH | UMOUNT_NOFOLLOW);
  return fail_errno(failed, doing);
}

// {"cache", "dataset", "set", "reason"} → {}. Files that are still open can be read as long as they are.
Result<json::object> end_view_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  mounts::detach_all_on(place->folder);
  return set_failed(*place, request).map([] { return json::object{}; });
}

// {"cache", "dataset", "set"} → {}, once no process serves it.
Result<json::object> forget_view_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  mounts::detach_all_on(place->folder);
  ::rmdir(place->folder.c_str());
  const auto set = staging::digest_from_hex(get_string(request, "set").value_or(""));
  if (set) staging::ViewMap::remove(place->map, *set);
  return json::object{};
}

// {"cache", "kept": [KEY.SET…]} → {"views": [{"dataset", "folder", "set", "published"}…]}: of an earlier
// daemon, those of `kept` that another process can answer for. The others are removed, wherever they are
// mounted: nothing answers for them.
Result<json::object> find_views_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto here = place_of(request);
  if (!here) return here.take_error();
  json::array views;
  auto folder = staging::open_tree(here->map.folder);
  if (!folder) return json::object{{"views", std::move(views)}};  // there has been none
  auto names = staging::names_in(std::move(folder->folder), printable(here->map.folder.native()));
  if (!names) return names.take_error();
  const auto kept = get_strings(request, "kept");
  for (const std::filesystem::path name : *names) {
    if (name.extension() != ".at") continue;
    const Place place = place_of_key(request, name.stem().native());
    const auto map = staging::ViewMap::open(place.map);
    const std::string set = map ? staging::to_hex((*map)->set()) : "";
    const bool is_kept = map && std::ranges::find(kept, place.map.key + "." + set) != kept.end();
    const auto entries = is_kept ? staging::ManifestReader::open(place.map.entries((*map)->set()))
                                 : fail(Errc::NotFound, "not kept");
    if (entries && staging::folder_name(entries->header().dataset) == place.map.key) {
      views.push_back(json::object{{"dataset", entries->header().dataset},
                                   {"folder", place.folder.native()},
                                   {"set", set},
                                   {"published", (*map)->is_published()}});
      continue;
    }
    if (map) (*map)->set_failed("the daemon that served it has ended");
    mounts::detach_all_on(place.folder);
    ::rmdir(place.folder.c_str());
    staging::ViewMap::remove(place.map);
  }
  return json::object{{"views", std::move(views)}};
}

}  // namespace spark::workers
