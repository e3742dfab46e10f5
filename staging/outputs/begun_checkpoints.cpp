#include "staging/outputs/begun_checkpoints.hpp"

#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/removed.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {

Result<std::vector<BegunCheckpoint>> begun_checkpoints(const std::filesystem::path& folder,
                                                       const std::string& host) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  std::vector<BegunCheckpoint> begun;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kShardsSuffix)) continue;
    const auto shards = published_copies(folder / name);
    if (!shards) continue;  // another host has just published it
    BegunCheckpoint one{name.substr(1, name.size() - sizeof kShardsSuffix), 0, false};
    for (const PublishedCopy& shard : *shards) {
      if (shard.name == host) {
        one.own_mtime_ns = shard.mtime_ns;
      } else {
        one.has_others = true;
      }
    }
    begun.push_back(std::move(one));
  }
  return begun;
}

}  // namespace spark::staging
