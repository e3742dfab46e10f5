#include "cli/verbs/datasets/hub_links.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace spark::cli {
namespace {

constexpr char kCache[] = "HF_HUB_CACHE", kOffline[] = "HF_HUB_OFFLINE";

}  // namespace

Result<std::unique_ptr<HubLinks>> HubLinks::make(const std::vector<StagedDataset>& staged) {
  std::unique_ptr<HubLinks> links(new HubLinks);
  if (::getenv(kCache) != nullptr) return links;
  std::map<std::string, std::set<std::string>> models;  // the caches of each
  for (const StagedDataset& dataset : staged)
    if (!dataset.hub_cache.empty() && !dataset.hub_folder.empty())
      models[dataset.hub_folder].insert(dataset.hub_cache);
  std::erase_if(models, [&](const auto& model) {
    if (model.second.size() == 1) return false;
    links->left_out_.push_back(std::to_string(model.second.size()) + " of these datasets are the model " +
                               printable(model.first) +
                               ", so HF_HUB_CACHE has none of them; load them by their paths");
    return true;
  });
  if (models.empty()) return links;
  std::error_code unknown;
  const auto temporary = std::filesystem::temp_directory_path(unknown);
  std::string name = (unknown ? "/tmp" : temporary.native()) + "/spark-stage-hub-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    return fail_errno(errno, "making the folder " + printable(name) + " for HF_HUB_CACHE");
  links->folder_ = name;
  for (const auto& [model, caches] : models) {
    const std::string target = *caches.begin() + "/" + model;
    if (::symlink(target.c_str(), (links->folder_ / model).c_str()) != 0)
      return fail_errno(errno, "making a link to " + printable(target));
  }
  return links;
}

std::map<std::string, std::string> HubLinks::variables() const {
  if (folder_.empty()) return {};
  std::map<std::string, std::string> all{{kCache, folder_.native()}};
  if (::getenv(kOffline) == nullptr) all.emplace(kOffline, "1");
  return all;
}

std::string HubLinks::remove() {
  const std::filesystem::path folder = std::exchange(folder_, {});
  if (folder.empty()) return "";
  std::error_code failed;
  std::vector<std::filesystem::path> made{folder / ".locks", folder / "version.txt", folder / "CACHEDIR.TAG"};
  std::filesystem::directory_iterator entry(folder, failed);
  for (const std::filesystem::directory_iterator end; !failed && entry != end; entry.increment(failed))
    if (std::error_code unknown; entry->is_symlink(unknown)) made.push_back(entry->path());
  for (const auto& path : made) std::filesystem::remove_all(path, failed);
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return "";
  return "the command has left files in " + printable(folder.native()) + ", its HF_HUB_CACHE; delete them";
}

}  // namespace spark::cli
