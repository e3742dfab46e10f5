#include "cli/verbs/datasets/hub_links.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::cli {
namespace {

constexpr char kCache[] = "HF_HUB_CACHE", kOffline[] = "HF_HUB_OFFLINE";
// As slurm/ has them.
constexpr char kOfflineMark[] = "SPARK_HUB_OFFLINE_IS_OURS", kName[] = "spark-stage-hub-";

bool is_hub_folder(const std::filesystem::path& folder) {
  return folder.is_absolute() && folder.filename().native().starts_with(kName);
}

// By their names.
std::map<std::string, std::string> links_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> links;
  for (const std::filesystem::path& entry : list_folder(folder)) {
    std::error_code unread;
    const auto target = std::filesystem::read_symlink(entry, unread);
    if (!unread) links.emplace(entry.filename(), target);
  }
  return links;
}

}  // namespace

std::unique_ptr<HubLinks> HubLinks::make(const std::vector<StagedDataset>& staged) {
  std::unique_ptr<HubLinks> links(new HubLinks);
  std::map<std::string, std::set<std::string>> models;  // the caches of each
  for (const StagedDataset& dataset : staged)
    if (!dataset.hub_cache.empty() && !dataset.hub_folder.empty())
      models[dataset.hub_folder].insert(dataset.hub_cache);
  if (models.empty()) return links;
  const std::string chosen = environment(kCache);
  if (::getenv(kCache) != nullptr && !is_hub_folder(chosen)) {
    links->left_out_.push_back("HF_HUB_CACHE is " +
                               (chosen.empty() ? "set, and empty" : printable(chosen) + " already") +
                               ", so the models are not in it; load them by their paths");
    return links;
  }
  auto wanted = chosen.empty() ? std::map<std::string, std::string>() : links_in(chosen);
  bool is_any = false;
  for (const auto& [model, caches] : models) {
    wanted.erase(model);
    if (caches.size() == 1) {
      wanted[model] = *caches.begin() + "/" + model;
      is_any = true;
      continue;
    }
    links->left_out_.push_back(std::to_string(caches.size()) + " of these datasets are the model " +
                               printable(model) +
                               ", so HF_HUB_CACHE has none of them; load them by their paths");
  }
  if (!is_any && chosen.empty()) return links;
  if (const std::string why = links->fill(wanted); !why.empty())
    links->left_out_.push_back(why + "; load the models by their paths");
  return links;
}

std::string HubLinks::fill(const std::map<std::string, std::string>& links) {
  std::error_code unknown;
  auto temporary = std::filesystem::temp_directory_path(unknown);
  if (!unknown)
    temporary = std::filesystem::absolute(temporary, unknown);  // the command may change its folder
  std::string name = (unknown ? "/tmp" : temporary.native()) + "/" + kName + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    const std::error_code why(errno, std::generic_category());
    return "no folder for HF_HUB_CACHE could be made in " +
           printable(std::filesystem::path(name).parent_path().native()) + ": " + why.message();
  }
  folder_ = name;
  for (const auto& [model, target] : links) {
    if (::symlink(target.c_str(), (folder_ / model).c_str()) == 0) continue;
    const std::error_code why(errno, std::generic_category());
    static_cast<void>(remove());
    return "no link to " + printable(target) + " could be made: " + why.message();
  }
  return "";
}

std::map<std::string, std::string> HubLinks::variables() const {
  if (folder_.empty()) return {};
  std::map<std::string, std::string> all{{kCache, folder_.native()}};
  if (::getenv(kOffline) != nullptr) return all;
  all.emplace(kOffline, "1");
  all.emplace(kOfflineMark, "1");
  return all;
}

std::string HubLinks::remove() {
  const std::filesystem::path folder = std::exchange(folder_, {});
  if (folder.empty()) return "";
  std::error_code failed;
  std::vector<std::filesystem::path> made{folder / ".locks", folder / "version.txt", folder / "CACHEDIR.TAG"};
  for (const auto& [model, target] : links_in(folder)) made.push_back(folder / model);
  for (const auto& path : made) std::filesystem::remove_all(path, failed);
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return "";
  return "the command has left files in " + printable(folder.native()) + ", its HF_HUB_CACHE; delete them";
}

}  // namespace spark::cli
