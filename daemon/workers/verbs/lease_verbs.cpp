// Leases, and their holders: schedulers' jobs and users.
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/leases/lease_json.hpp"
#include "staging/leases/scheduler_job.hpp"

namespace spark::workers {
namespace {

using OpenedCatalog = Result<std::unique_ptr<staging::Catalog>>;

// {"leases"}; a spare one that can't be read has {"id", "lost"}. A missing catalog has none: a daemon that
// starts reads them before it makes one.
Result<json::object> list_leases(const OpenedCatalog& catalog, const staging::SpareLeases& spare) {
  const bool is_missing = !catalog && catalog.error().number == ENOENT;
  const auto leases = catalog      ? (*catalog)->leases()
                      : is_missing ? std::vector<staging::Lease>()
                                   : Result<std::vector<staging::Lease>>(fail(catalog.error()));
  if (!leases) return leases.take_error();
  const auto more = spare.all();
  if (!more) return more.take_error();
  json::object by_id;  // the catalog could not take the spare one, so that is newer
  for (const staging::Lease& lease : *leases) by_id[lease.id] = to_json(lease);
  for (const staging::Lease& lease : more->leases) by_id[lease.id] = to_json(lease);
  for (const auto& [file, why] : more->lost) by_id[file] = json::object{{"id", file}, {"lost", why}};
  json::array rows;
  for (auto& row : by_id) rows.push_back(std::move(row.value()));
  return json::object{{"leases", std::move(rows)}};
}

// Each where it is, whatever fails; the catalog's drive first, since the cache's may not answer. Also on a
// full drive: nothing could be evicted otherwise.
Result<> remove_leases(const std::filesystem::path& state_dir, const staging::SpareLeases& spare,
                       const json::object& request) {
  const std::vector<std::string> ids = get_strings(request, "ids");
  Result<> all = staging::Reserve({state_dir}).with([&]() -> Result<> {
    const auto catalog = staging::Catalog::open(state_dir, staging::IfMissing::Fail);
    Result<> removed = catalog ? Result<>() : fail(catalog.error());
    for (const std::string& id : ids)
      if (removed) removed = (*catalog)->remove_lease(id).map([](Change) {});
    return removed;
  });
  for (const std::string& id : ids)
    if (auto removed = spare.remove(id); all) all = std::move(removed);
  return all;
}

Result<> add_lease(const OpenedCatalog& catalog, const staging::CacheFolder& cache,
                   const staging::Lease& lease) {
  const staging::SpareLeases spare(cache.path());
  auto added = catalog ? (*catalog)->add_lease(lease) : fail(catalog.error());
  // The catalog has it: what the cache's drive says does not matter.
  if (added) static_cast<void>(spare.remove(lease.id));
  if (added) return added;
  if (added.error().kind == Errc::NotFound) return added;
  const auto there = cache.id();
  const bool is_mounted = there && !there->empty();  // its drive
  return is_mounted && spare.add(lease) ? Result<>() : std::move(added);
}

// A lease on a copy that is served as it is. NotFound: it is not there.
Result<json::object> serve(staging::Catalog& catalog, const json::object& request) {
  const staging::Lease lease = staging::lease_from_json(request);
  const std::string path = get_text(request, "path");
  if (::access(path.c_str(), F_OK) != 0) {
    return fail(Errc::NotFound, "its copy is gone from the cache: " + printable(path) + ": " +
                                    std::generic_category().message(errno));
  }
  if (auto added = catalog.add_lease(lease); !added) return added.take_error();
  const auto used_at = parse_rfc3339(get_text(request, "used_at"));
  if (!used_at) return json::object{};
  return empty_answer(catalog.touch(lease.dataset, lease.generation, *used_at));
}

}  // namespace

// {"cache", "op": "list"} → {"leases"}; {"op": "add", …} → {}; {"op": "serve", …, "path", "used_at"} → {};
// {"op": "remove", "ids"} → {}
Result<json::object> lease_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "lease worker: no cache in the request");
  const staging::CacheFolder folder(cache_settings_from_json(*cache).path);
  const staging::SpareLeases spare(folder.path());
  const auto none = [] { return json::object{}; };
  const std::string op = get_string(request, "op").value_or("list");
  const std::filesystem::path state_dir = get_text(*cache, "state_dir");
  if (op == "remove") return remove_leases(state_dir, spare, request).map(none);
  const auto catalog = staging::Catalog::open(state_dir, staging::IfMissing::Fail);
  if (op == "add") return add_lease(catalog, folder, staging::lease_from_json(request)).map(none);
  if (op != "serve") return list_leases(catalog, spare);
  return catalog ? serve(**catalog, request) : fail(catalog.error());
}

// {} → {"slurm": [ID…]}: jobs that have a process on this host
Result<json::object> jobs_here_verb(const json::object& /*request*/, const ProgressLine& /*progress*/) {
  const auto jobs = staging::slurm_jobs_here(SystemRoot{});
  if (!jobs) return jobs.take_error();
  return json::object{{"slurm", json::value_from(*jobs)}};
}

// {"user"} → {"uid"}. May query a directory server.
Result<json::object> user_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string user = get_text(request, "user");
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(user.c_str(), &entry, text.data(), text.size(), &found);
  if (error != 0) return fail_errno(error, "looking for user " + printable(user));
  if (found == nullptr) return fail(Errc::NotFound, "no user " + printable(user) + " on this host");
  return json::object{{"uid", std::uint64_t{entry.pw_uid}}};
}

}  // namespace spark::workers
