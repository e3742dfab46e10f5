#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/cache_folder.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/manifest/names.hpp"

namespace spark::workers {
namespace {

// Leases that the catalog could not take, as with a full state folder: files on the cache's drive, where the
// copies are that they keep. They survive the daemon.
class SpareLeases {
 public:
  explicit SpareLeases(const std::filesystem::path& cache) : cache_(cache), folder_(cache / ".leases") {}

  Result<> add(const staging::Lease& lease) const;
  Result<> remove(const std::string& id) const;
  Result<std::vector<json::object>> all() const;  // as in the messages of lease_verb(), or {"id", "lost"}

 private:
  std::filesystem::path file(const std::string& id) const;

  std::filesystem::path cache_, folder_;
};

std::filesystem::path SpareLeases::file(const std::string& id) const {
  return folder_ / (staging::folder_name(id) + ".json");
}

Result<> SpareLeases::add(const staging::Lease& lease) const {
  const auto cache = staging::CacheFolder(cache_).id();
  if (!cache) return cache.take_error();
  if (cache->empty())  // its drive is not mounted
    return fail(Errc::Unavailable, printable(cache_.native()) + " has nothing of a cache");
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(errno, "making folder " + printable(folder_.native()));
  return write_file_atomically(file(lease.id), json::serialize(to_json(lease)), 0600);
}

Result<> SpareLeases::remove(const std::string& id) const {
  const std::filesystem::path path = file(id);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  return fail_errno(errno, "deleting " + printable(path.native()));
}

Result<std::vector<json::object>> SpareLeases::all() const {
  std::vector<json::object> found;
  std::error_code error;
  for (std::filesystem::directory_iterator files(folder_, error), end; !error && files != end;
       files.increment(error)) {
    if (files->path().extension() != ".json") continue;  // a worker was killed while it wrote it
    const auto text = read_file(files->path());
    if (!text && text.error().kind == Errc::NotFound) continue;
    if (!text && !staging::is_medium_error(text.error().number)) return text.take_error();
    auto lease = text ? parse_json_object(*text) : fail(text.error());
    if (!lease) lease = json::object{{"id", files->path().native()}, {"lost", lease.error().message()}};
    found.push_back(std::move(*lease));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno(error.value(), "reading folder " + printable(folder_.native()));
  return found;
}

Result<json::object> list_leases(staging::Catalog& catalog, const SpareLeases& spare) {
  const auto leases = catalog.leases();
  if (!leases) return leases.take_error();
  auto more = spare.all();
  if (!more) return more.take_error();
  json::object by_id;  // the catalog could not take the spare one, so that is newer
  for (const staging::Lease& lease : *leases) by_id[lease.id] = to_json(lease);
  for (json::object& lease : *more) by_id[get_string(lease, "id").value_or("")] = std::move(lease);
  json::array rows;
  for (auto& row : by_id) rows.push_back(std::move(row.value()));
  return json::object{{"leases", std::move(rows)}};
}

using OpenedCatalog = Result<std::unique_ptr<staging::Catalog>>;

// Each where it is, whatever fails; the catalog's drive first, since the cache's may not answer.
Result<> remove_leases(const OpenedCatalog& catalog, const SpareLeases& spare, const json::object& request) {
  const json::array* ids = get_array(request, "ids");
  if (ids == nullptr) return {};
  Result<> all = catalog ? Result<>() : fail(catalog.error());
  for (const json::value& id : *ids)
    if (all) all = (*catalog)->remove_lease(std::string(id.as_string())).map([](Change) {});
  for (const json::value& id : *ids)
    if (auto removed = spare.remove(std::string(id.as_string())); all) all = std::move(removed);
  return all;
}

Result<> add_lease(const OpenedCatalog& catalog, const SpareLeases& spare, const staging::Lease& lease) {
  auto added = catalog ? (*catalog)->add_lease(lease) : fail(catalog.error());
  // The catalog has it: what the cache's drive says does not matter.
  if (added) static_cast<void>(spare.remove(lease.id));
  if (added) return added;
  if (added.error().kind == Errc::NotFound) return added;
  return spare.add(lease) ? Result<>() : std::move(added);
}

// A lease on a copy that is served as it is. NotFound: it is not there.
Result<json::object> serve(staging::Catalog& catalog, const json::object& request) {
  const staging::Lease lease = lease_from_json(request);
  const std::string path = get_string(request, "path").value_or("");
  if (::access(path.c_str(), F_OK) != 0) {
    return fail(Errc::NotFound, "its copy is gone from the cache: " + printable(path) + ": " +
                                    std::generic_category().message(errno));
  }
  if (auto added = catalog.add_lease(lease); !added) return added.take_error();
  const auto used_at = parse_rfc3339(get_string(request, "used_at").value_or(""));
  if (!used_at) return json::object{};
  return catalog.touch(lease.dataset, lease.generation, *used_at).map([] { return json::object{}; });
}

}  // namespace

// {"cache", "op": "list"} → {"leases"}; {"op": "add", …} → {}; {"op": "serve", …, "path", "used_at"} → {};
// {"op": "remove", "ids"} → {}
Result<json::object> lease_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "lease worker: no cache in the request");
  const SpareLeases spare(cache_settings_from_json(*cache).path);
  const auto none = [] { return json::object{}; };
  auto catalog = staging::Catalog::open(get_string(*cache, "state_dir").value_or(""));
  const std::string op = get_string(request, "op").value_or("list");
  if (op == "add") return add_lease(catalog, spare, lease_from_json(request)).map(none);
  if (op == "remove") return remove_leases(catalog, spare, request).map(none);
  if (!catalog) return catalog.take_error();
  if (op == "serve") return serve(**catalog, request);
  return list_leases(**catalog, spare);
}

}  // namespace spark::workers
