#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/text.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"
#include "staging/cache/catalog/catalog.hpp"

namespace spark::workers {
namespace {

Result<json::object> list_leases(staging::Catalog& catalog) {
  const auto leases = catalog.leases();
  if (!leases) return leases.take_error();
  json::array rows;
  for (const staging::Lease& lease : *leases) rows.push_back(to_json(lease));
  return json::object{{"leases", std::move(rows)}};
}

// {"ids": [ID…]} → {"missing": [ID…]}: leases that no longer existed, and have lost their copies.
Result<json::object> remove_leases(staging::Catalog& catalog, const json::object& request) {
  json::array missing;
  if (const json::array* ids = get_array(request, "ids")) {
    for (const json::value& id : *ids) {
      const auto removed = catalog.remove_lease(std::string(id.as_string()));
      if (!removed) return removed.take_error();
      if (*removed == Change::AlreadyThere) missing.push_back(id);
    }
  }
  return json::object{{"missing", std::move(missing)}};
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
// {"op": "remove", "ids"} → {"missing"}
Result<json::object> lease_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const json::object* cache = get_object(request, "cache");
  if (cache == nullptr) return fail(Errc::Invalid, "lease worker: no cache in the request");
  auto catalog = staging::Catalog::open(get_string(*cache, "state_dir").value_or(""));
  if (!catalog) return catalog.take_error();
  const std::string op = get_string(request, "op").value_or("list");
  if (op == "serve") return serve(**catalog, request);
  if (op == "remove") return remove_leases(**catalog, request);
  if (op == "add") return (*catalog)->add_lease(lease_from_json(request)).map([] { return json::object{}; });
  return list_leases(**catalog);
}

}  // namespace spark::workers
