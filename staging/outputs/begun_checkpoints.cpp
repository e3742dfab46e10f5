#include "staging/outputs/begun_checkpoints.hpp"

#include <algorithm>
#include <charconv>

#include "base/file.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/manifest/names.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/shards.hpp"

namespace spark::staging {
namespace {

// 0 if it is none.
std::uint64_t number_in(const std::filesystem::path& file) {
  constexpr std::size_t kMostDigits = 16;
  const auto text = read_regular_file(file, kMostDigits);
  std::uint64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

// A host that has sent its shard sends it again every few seconds, in case all are there by now: the folder
// of such a copy comes and goes, and is no progress. Its journal is, as the job has saved the checkpoint
// again. So is the sign of a host that will send its shard: its content changes.
std::uint64_t progress_of_others(const std::filesystem::path& shards, const std::string& host,
                                 const std::vector<PublishedCopy>& sent) {
  std::vector<std::filesystem::path> again;
  for (const PublishedCopy& shard : sent) again.push_back(Destination{shards, shard.name}.partial());
  const std::filesystem::path own = Destination{shards, host}.partial();
  const std::string own_sign = companion_name(host, kPlannedSuffix);
  std::uint64_t progress = 0;
  const auto names = names_of(shards);
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    const std::filesystem::path partial = shards / (*names)[i];
    if (!(*names)[i].starts_with('.') || partial == own || (*names)[i] == own_sign) continue;
    if ((*names)[i].ends_with(kPlannedSuffix)) progress += number_in(partial);
    std::error_code is_none;
    const bool is_again = std::ranges::find(again, partial) != again.end();
    if (!is_again && std::filesystem::is_directory(partial, is_none)) ++progress;
    const auto size = std::filesystem::file_size(partial / "journal", is_none);
    if (!is_none) progress += size;
  }
  return progress;
}

}  // namespace

Result<std::vector<BegunCheckpoint>> begun_checkpoints(const std::filesystem::path& folder,
                                                       const std::string& host) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  std::vector<BegunCheckpoint> begun;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kShardsSuffix)) continue;
    const auto shards = published_copies(folder / name);
    if (!shards) continue;  // another host has just published it
    BegunCheckpoint one{name.substr(1, name.size() - sizeof kShardsSuffix), 0, false,
                        progress_of_others(folder / name, host, *shards)};
    for (const PublishedCopy& shard : *shards) {
      if (shard.name == host) {
        auto manifest = manifest_of_published({folder / name, host});
        one.own_written = manifest && *manifest ? written_of(**manifest) : 0;
      } else {
        one.has_others = true;
        ++one.others_progress;
      }
    }
    begun.push_back(std::move(one));
  }
  return begun;
}

}  // namespace spark::staging
