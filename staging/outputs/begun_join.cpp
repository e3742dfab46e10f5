#include "staging/outputs/begun_join.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr std::string_view kJoin = "join of the shards of";

// Opening a folder has an NFS client ask the server for its changes: another host may just have made what
// this one remembers as missing.
void ask_server(const std::filesystem::path& folder) {
  const UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

std::string state_of_join(const std::vector<std::string>& hosts) {
  std::string state(kJoin);
  for (const std::string& host : hosts) state += " " + encode_name(host);
  return state;
}

Result<std::vector<std::string>> hosts_of_begun_join(const ShardedCheckpoint& checkpoint) {
  const std::filesystem::path partial = Destination{checkpoint.folder, checkpoint.name}.partial();
  ask_server(checkpoint.folder);
  ask_server(partial);
  std::vector<std::string> hosts;
  const auto area = PartialArea::look_at(partial);
  if (!area && area.error().kind == Errc::NotFound) return hosts;
  if (!area && area.error().kind == Errc::Refused) {
    Error error = area.error();
    error.hint =
        "look at it: rename it, and keep it, since the only copies of some shards' files may be in it";
    return fail(std::move(error));
  }
  if (!area) return area.take_error();
  const auto state = read_regular_file(area->folder() / "state");
  if (!state && state.error().kind != Errc::NotFound) return state.take_error();
  if (!state || !state->starts_with(kJoin)) return hosts;
  for (const std::string& word : split(state->substr(kJoin.size()), ' ')) {
    auto host = decode_name(word);
    if (host && !host->empty()) hosts.push_back(std::move(*host));
  }
  std::ranges::sort(hosts);
  return hosts;
}

Result<> remove_begun_join(const ShardedCheckpoint& checkpoint) {
  const auto hosts = hosts_of_begun_join(checkpoint);
  if (!hosts) return hosts.take_error();
  if (hosts->empty()) return {};
  const Destination destination{checkpoint.folder, checkpoint.name};
  auto area = PartialArea::try_open(destination.partial());
  if (!area) return area.take_error();
  // If the checkpoint has its name, it is complete, and would have no manifest without this one.
  if (auto recovered = recover_publishing(destination, *area); !recovered) return recovered;
  return area->clear();
}

}  // namespace spark::staging
