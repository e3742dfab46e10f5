#include "cli/status.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "cli/client/api.hpp"

namespace spark::cli {
namespace {

// Keeps the rows of an array with a `key` among the names, and removes these names from `unseen`.
void keep_named(json::object& status, std::string_view rows, std::string_view key,
                const std::vector<std::string>& names, std::set<std::string>& unseen) {
  json::value* value = status.if_contains(rows);
  if (value == nullptr || !value->is_array()) return;
  json::array kept;
  for (json::value& row : value->get_array()) {
    const auto name = row.is_object() ? get_string(row.get_object(), key) : std::nullopt;
    if (!name || std::ranges::find(names, *name) == names.end()) continue;
    unseen.erase(*name);
    kept.push_back(std::move(row));
  }
  if (kept.empty()) {
    status.erase(rows);
  } else {
    *value = std::move(kept);
  }
}

}  // namespace

Result<json::object> ask_status(Context& context) {
  return call(*context.client, {"GET", "/v1/status", {}});
}

Result<json::object> ask_volumes(Context& context, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), "") != names.end())
    return fail(Errc::NotFound, "there is no volume ''", "`spark-stage status` lists them");
  constexpr std::ptrdiff_t kInOnePath = 64;  // the daemon reads no longer header than 16 KiB
  json::object all;
  json::array volumes;
  for (auto rest = names.begin(); rest != names.end();) {
    const auto end = rest + std::min(kInOnePath, names.end() - rest);
    const std::string asked = join(std::vector<std::string>(rest, end), ",");
    auto answer = call(*context.client, {"GET", "/v1/volumes/" + percent_encoded(asked), {}});
    if (!answer) return answer;
    if (const json::array* some = get_array(*answer, "volumes"))
      volumes.insert(volumes.end(), some->begin(), some->end());
    all = std::move(*answer);
    rest = end;
  }
  all["volumes"] = std::move(volumes);
  return all;
}

std::vector<std::string> volume_names(const json::object& status) {
  std::vector<std::string> names;
  for (const json::object* volume : get_objects(status, "volumes"))
    if (const auto name = get_string(*volume, "name")) names.push_back(*name);
  return names;
}

Result<json::object> volume_of(const json::object& status, const std::string& name) {
  for (const json::object* volume : get_objects(status, "volumes"))
    if (get_string(*volume, "name") == name) return *volume;
  const std::string near = nearest(name, volume_names(status));
  return fail(Errc::NotFound, "there is no volume '" + printable(name) + "'",
              near.empty() ? "`spark-stage status` lists them" : "did you mean '" + printable(near) + "'?");
}

Result<json::object> about(json::object status, const std::vector<std::string>& names) {
  if (names.empty()) return status;
  const json::object all = status;
  std::set<std::string> unseen(names.begin(), names.end());
  keep_named(status, "volumes", "name", names, unseen);
  for (const std::string_view work : {"stages", "prefetches", "stage_outs"})
    keep_named(status, work, "dataset", names, unseen);
  if (!unseen.empty()) return volume_of(all, *unseen.begin()).take_error();
  for (const std::string_view rest : {"targets", "cache", "outputs", "fleet"}) status.erase(rest);
  return status;
}

}  // namespace spark::cli
