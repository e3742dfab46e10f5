// A copy as a file system while it is made: served by a process that the daemon starts and supervises.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <vector>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/served_copies.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"
#include "staging/view/fuse/fuse_session.hpp"

namespace spark::workers {
namespace {

constexpr unsigned kEntered = 0711;  // by name, as the other folders with copies

struct Place {
  staging::ViewPlace map;
  // {"folder", "mounted", "nodes", "dataset", "view", "demand", "ended"?}; empty before it is served.
  json::object note;
  std::filesystem::path folder;   // as jobs get it
  std::filesystem::path mounted;  // the same without links, as in the mount table
};

// An earlier daemon may have had another cache: where the view is mounted is in its note.
Place place_of_name(const json::object& cache, std::string name) {
  Place place;
  place.map = staging::view_place(SystemRoot{}, get_text(cache, "state_dir"), std::move(name));
  const auto text = read_file(place.map.note());
  const auto note = text ? parse_json_object(*text) : fail(text.error());
  if (note) place.note = *note;
  const auto noted = get_string(place.note, "folder");
  place.folder = noted ? std::filesystem::path(*noted)
                       : std::filesystem::path(get_text(cache, "path")) / ".live" / place.map.name;
  place.mounted = get_string(place.note, "mounted").value_or(place.folder.native());
  return place;
}

Result<Place> place_of(const json::object& request) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "live view: no cache in the request");
  const auto number = get_count(request, "view");
  return place_of_name(*cache, staging::view_name(get_text(request, "dataset"), number));
}

void take_down(const Place& place) {
  mounts::detach_all_on(place.mounted);
  ::rmdir(place.mounted.c_str());
  staging::ViewMap::remove(place.map);
}

// None: 0.
std::uint64_t number_in(const std::filesystem::path& name) {
  const std::string text = name.extension().native();
  std::uint64_t number = 0;
  if (!text.empty()) std::from_chars(text.data() + 1, text.data() + text.size(), number);
  return number;
}

}  // namespace

// {"cache", "dataset", "view": its number, "demand", "taken_over"} and the connection as kInherited → {} once
// no program uses the view. Progress: {"folder", "can_resend"}, once it answers; {"view_failed": why} of a
// file that can't be read though it is here.
Result<json::object> serve_view_verb(const json::object& request, const ProgressLine& progress) {
  auto place = place_of(request);
  if (!place) return place.take_error();
  const UniqueFd device(kInherited);
  const auto map = staging::ViewMap::open(place->map);
  if (!map) return map.take_error();
  const auto tree = staging::ViewTree::read(place->map.entries());
  if (!tree) return tree.take_error();
  const bool is_taken_over = get_bool(request, "taken_over").value_or(false);
  if (!is_taken_over) {
    const std::filesystem::path parent = place->folder.parent_path();
    ::mkdir(parent.c_str(), kEntered);
    std::error_code error;
    place->mounted = std::filesystem::canonical(parent, error) / place->folder.filename();
    if (error) return fail_errno(error.value(), "opening " + printable(parent.native()));
    json::object note{
        {"folder", place->folder.native()}, {"mounted", place->mounted.native()}, {"nodes", tree->size()}};
    for (const char* key : {"dataset", "view", "demand"})
      if (request.contains(key)) note[key] = request.at(key);
    const auto noted = write_file_atomically(place->map.note(), json::serialize(note));
    if (!noted) return fail(noted.error());
    ::mkdir(place->mounted.c_str(), kEntered);
    const std::string name = staging::encode_name(get_text(request, "dataset"));
    const auto mounted = staging::mount_fuse(device, place->mounted, name);
    if (!mounted) return mounted.take_error();
  }
  const auto begun = [&](bool can_resend) {
    progress({{"folder", place->folder.native()}, {"can_resend", can_resend}});
  };
  const auto failed = [&](const std::string& why) {
    constexpr std::size_t kLongest = 1000;  // a short line is not mixed with another thread's
    progress({{"view_failed", why.substr(0, kLongest)}});
  };
  return staging::serve_fuse({*tree, **map, device.get(), is_taken_over, begun, failed}).map([] {
    return json::object{};
  });
}

// {"cache", "dataset", "view", "copy"} → {}. Mounts the published copy on top of the view. Refused: it is not
// the copy of that view, whose set has changed.
Result<json::object> show_copy_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  const std::string copy = get_text(request, "copy");
  const auto map = staging::ViewMap::open(place->map);
  if (!map) return map.take_error();
  if (!(*map)->is_published() || (*map)->data() != copy)
    return fail(Errc::Refused, "the copy " + printable(copy) + " is of another set than the live view " +
                                   printable(place->folder.native()));
  const char* folder = place->mounted.c_str();
  const auto table = mounts::read_mount_table(SystemRoot{});
  const mounts::Mount* top = table ? mounts::mounted_at(*table, place->mounted.native()) : nullptr;
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

// {"cache", "dataset", "view"} and the connection as kInherited → {}. What was read through the view
// leaves the page cache: the copy has pages of its own.
Result<json::object> drop_pages_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const UniqueFd device(kInherited);
  const auto place = place_of(request);
  if (!place) return place.take_error();
  const auto nodes = get_count(place->note, "nodes");
  const auto table = mounts::read_mount_table(SystemRoot{});
  if (!table) return table.take_error();
  for (const mounts::Mount* mount : mounts::stack_at(*table, place->mounted)) {
    if (mount->type != staging::kFuseType) continue;
    const auto dropped = staging::drop_fuse_pages(device, minor(mount->device_number), nodes);
    if (!dropped) return fail(dropped.error());
  }
  return json::object{};
}

// {"cache", "dataset", "view", "reason"?, "detach"?, "remove"?} → {}. With a reason, what is missing will not
// come. "detach": no path leads to it any more; files that are open can be read as long as they are.
// "remove": no process serves it.
Result<json::object> end_view_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto place = place_of(request);
  if (!place) return place.take_error();
  if (get_bool(request, "remove").value_or(false)) {
    take_down(*place);
  } else if (get_bool(request, "detach").value_or(false)) {
    json::object note = place->note;
    note["ended"] = true;
    // Before its process may end, and all files with it. On a full drive a later daemon asks the leases.
    if (!place->note.empty()) (void)write_file_atomically(place->map.note(), json::serialize(note));
    mounts::detach_all_on(place->mounted);
  }
  const auto reason = get_string(request, "reason");
  if (!reason) return json::object{};
  const auto map = staging::ViewMap::open(place->map);
  if (!map) return map.take_error();
  (*map)->set_failed(*reason);
  return json::object{};
}

// {"cache", "kept": [NUMBER…], "own": [NUMBER…]} → {"views": [{"folder", "dataset", "view", "demand",
// "ended"?, "copy"?: where it is published, "failed"?: why nothing more arrives in it}…]}: of an earlier
// daemon, those of `kept` that another process can answer for. The others are removed, wherever they are
// mounted: nothing answers for them. `own` are this daemon's.
Result<json::object> find_views_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto here = place_of(request);
  if (!here) return here.take_error();
  const auto kept = get_strings(request, "kept"), own = get_strings(request, "own");
  json::array views;
  std::map<std::filesystem::path, std::vector<std::filesystem::path>> files;  // by name of the view
  for (const std::filesystem::path& folder : {here->map.folder, here->map.maps()}) {
    std::error_code error;
    for (const std::filesystem::path& at : list_folder(folder, error)) {
      std::filesystem::path name = at.stem();
      while (number_in(name) == 0 && name.has_extension()) name = name.stem();  // a file that was being made
      files[name].push_back(at);
    }
    if (error && error.value() != ENOENT)
      return fail_errno(error.value(), "reading " + printable(folder.native()));
  }
  for (const auto& [name, paths] : files) {
    const std::string number = std::to_string(number_in(name));
    if (std::ranges::find(own, number) != own.end()) continue;
    const Place place = place_of_name(*get_object(request, "cache"), name);
    const auto map = staging::ViewMap::open(place.map);
    const bool is_kept = std::ranges::find(kept, number) != kept.end();
    if (is_kept && map && !place.note.empty()) {
      json::object view = place.note;
      if ((*map)->is_published()) view["copy"] = (*map)->data();
      if ((*map)->has_failed()) view["failed"] = (*map)->reason();
      views.push_back(std::move(view));
      continue;
    }
    if (map) (*map)->set_failed("the daemon that served it has ended");
    take_down(place);
    std::error_code error;
    for (const std::filesystem::path& path : paths) std::filesystem::remove(path, error);
  }
  return json::object{{"views", std::move(views)}};
}

}  // namespace spark::workers
