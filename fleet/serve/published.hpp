// The published copies of a cache that peers may read, and adopted folders, by their set names between hosts.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::fleet {

class PublishedCopies {
 public:
  // `cache` is the cache's folder; `state_dir` contains its catalog. `folders`: the datasets in plain folders
  // that are exchanged by the present configuration. `adopted`: the folders that it has adopted.
  PublishedCopies(std::filesystem::path cache, std::filesystem::path state_dir, std::set<std::string> folders,
                  std::vector<AdoptedFolder> adopted = {})
      : cache_(std::move(cache)), state_dir_(std::move(state_dir)), folders_(std::move(folders)) {
    for (AdoptedFolder& one : adopted)
      adopted_.push_back(std::make_shared<const AdoptedFolder>(std::move(one)));
  }

  struct Copy {
    std::filesystem::path path,
        manifest;             // the same for an adopted folder: it is offered while this is there
    std::string set;          // the copy's set name
    std::string content_set;  // by its content, see content_origin(); empty: not known yet, also the others
    std::uint64_t units = 0;  // of the set; see Layout
    std::string walk;         // name of the walk of its volume; empty: it comes from no volume
    staging::GenerationRow row;
    std::array<std::int64_t, 3> file{};              // identifies the manifest's file, which may be replaced
    std::shared_ptr<const AdoptedFolder> adopted{};  // none: it is a copy of this host
  };

  // Rereads the catalog; deleted, damaged and suspect copies are not offered. Reads new manifests, which
  // takes seconds for a million files; while another thread does, it returns without them. Thread-safe.
  void look();
  std::optional<Copy> find(const std::string& set) const;  // by one of its two names
  std::optional<Copy> find_walk(const std::string& walk) const;
  std::optional<Copy> find_content(const std::string& hash) const;
  // True if a job used a dataset of this host at the last look().
  bool is_leased() const { return is_leased_; }
  // Why the catalog could not be opened at the last look(); empty: it was. Thread-safe.
  std::string trouble() const;
  // [{"name", "generation", "hash", "bytes", "files", "model"?}…]: the newest generation of each dataset, or
  // its adopted folder, with generation 0.
  // "model": see staging::summary_text. Also {"name", "withheld": true, "model_name"?} of each adopted folder
  // that is not offered now.
  json::array list() const;
  // [{"name", "bytes", "files", "hash"}…] of the adopted folders that peers get now.
  json::array offered() const;

 private:
  std::filesystem::path cache_, state_dir_;
  std::set<std::string> folders_;
  std::vector<std::shared_ptr<const AdoptedFolder>> adopted_;
  std::mutex looking_;                         // guards catalog_; locked before mutex_
  std::unique_ptr<staging::Catalog> catalog_;  // while it is open
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Copy> copies_;  // key: the manifest's path
  std::string trouble_;
  bool is_naming_ = false;  // so that each manifest is read once
  std::condition_variable named_;
  std::atomic<bool> is_leased_{false};

  void look_into_catalog();
  void look_for_adopted();
  void look_into(const staging::CacheFolder& folder, staging::Catalog& catalog);
  void name_new();
  template <class Is>
  std::optional<Copy> find_if(const Is& is) const;
};

}  // namespace spark::fleet
