// Caches as different versions of huggingface_hub write them, with blobs that have their true names. A model
// has config.json, and weights in two files with an index.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "staging/models/sha256.hpp"
#include "tests/unit/staging/models/made_weights.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

enum class HubLayout { Old, Shared, WithoutLinks };

class MadeHub {
 public:
  explicit MadeHub(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path model(const std::string& name) const {
    return folder_ / ("models--" + std::string(name).replace(name.find('/'), 1, "--"));
  }
  std::filesystem::path snapshot(const std::string& name) const { return model(name) / "snapshots" / commit; }
  // The file behind the links of the snapshot.
  std::filesystem::path payload(const std::string& name, const std::string& file) const {
    return std::filesystem::canonical(snapshot(name) / file);
  }

  void make(const std::string& name, HubLayout layout) {
    write_text(model(name) / "refs/main", commit);
    for (const auto& [file, content] : files) add(name, file, content, layout);
  }
  void add(const std::string& name, const std::string& file, const std::string& content, HubLayout layout) {
    namespace fs = std::filesystem;
    const bool is_large = file.ends_with(".safetensors") || content.size() > kMiB;
    const std::string etag = is_large ? sha256_of(content) : git_sha1_of(content);
    const fs::path place = snapshot(name) / file, blob = model(name) / "blobs" / etag;
    if (layout == HubLayout::WithoutLinks) return write_text(place, content);
    fs::create_directories(place.parent_path());
    fs::create_directories(blob.parent_path());
    fs::create_symlink("../../blobs/" + etag, place);
    if (layout == HubLayout::Old || !is_large) return write_text(blob, content);
    const std::string stored = "aa/" + sha256_of("xet " + content);  // no digest of the content
    write_text(folder_ / "blobs/.huggingface-shared-blobs", "1\n");
    write_text(folder_ / "blobs" / stored, content);
    fs::create_symlink("../../blobs/" + stored, blob);
  }
  // As `hf download` leaves it; `more`: names of files that were not downloaded.
  void list_files(const std::string& name, const std::vector<std::string>& more = {}) {
    std::string text = R"({"format_version":1,"files":{)";
    for (const auto& [file, content] : files) {
      text += '"' + file + R"(":{"size":)" + std::to_string(content.size()) + R"(,"blob_id":")" +
              git_sha1_of(content) + '"';
      if (file.ends_with(".safetensors"))
        text +=
            R"(,"lfs_sha256":")" + sha256_of(content) + R"(","lfs_size":)" + std::to_string(content.size());
      text += "},";
    }
    for (const std::string& file : more)
      text += '"' + file + R"(":{"size":5,"blob_id":")" + git_sha1_of("other") + "\"},";
    text.back() = '}';
    write_text(model(name) / "trees" / (commit + ".json"), text + "}");
  }

  static std::string sha256_of(const std::string& content) {
    Sha256 hash;
    hash.add(std::as_bytes(std::span(content)));
    return hash.hex();
  }
  static std::string git_sha1_of(const std::string& content) {
    GitSha1 hash(content.size());
    hash.add(std::as_bytes(std::span(content)));
    return hash.hex();
  }

  static constexpr char kHeader[] = R"({"a":{"dtype":"U8","shape":[1000],"data_offsets":[0,1000]}})";

  std::string commit = std::string(40, 'c');
  std::map<std::string, std::string> files{
      {"config.json", R"({"model_type":"tiny"})"},
      {"model-00001-of-00002.safetensors", safetensors(kHeader, 1000)},
      {"model-00002-of-00002.safetensors", safetensors(kHeader, 999) + "y"},
      {"model.safetensors.index.json",
       R"({"metadata":{"total_size":24},"weight_map":{"a":"model-00001-of-00002.safetensors","b":)"
       R"("model-00002-of-00002.safetensors"}})"}};

 private:
  std::filesystem::path folder_;
};

}  // namespace spark::staging::test
