// What models' publishers and downloading programs wrote: headers of weights, indexes of several files, lists
// of files, git's index; and our record of a copy, which another host may have written.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "staging/models/git_index.hpp"
#include "staging/models/hub_cache.hpp"
#include "staging/models/model.hpp"
#include "staging/models/model_folder.hpp"
#include "staging/models/structure.hpp"
#include "staging/models/sums.hpp"
#include "staging/models/weights.hpp"

using namespace spark::staging;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A file of that content; as if it were longer by what the first byte says, as a sparse or truncated one.
FileBytes file_of(std::string_view content, spark::Bytes longer) {
  FileBytes file;
  file.size = content.size() + longer;
  file.read = [content](spark::Bytes offset, std::size_t want) -> std::optional<std::string> {
    if (offset >= content.size()) return std::string();
    return std::string(content.substr(offset, want));
  };
  return file;
}

void check_weights(std::string_view content) {
  for (const spark::Bytes longer : {spark::Bytes{0}, spark::Bytes{1} << 40}) {
    const FileBytes file = file_of(content, longer);
    for (const auto look : {look_at_safetensors, look_at_gguf}) {
      const auto weights = look(file);
      if (weights && weights->fault.empty()) require(weights->part <= weights->parts || weights->parts <= 1);
    }
  }
}

// A name such as "..models" is no way out.
bool leads_out(const std::string& path) {
  return path.starts_with('/') || ('/' + path + '/').find("/../") != std::string::npos;
}

void check_record(std::string_view text) {
  const auto record = parse_model_record(text);
  if (!record) return;
  require(!leads_out(record->entry_point) && !leads_out(record->hub_folder));
  const auto again = parse_model_record(to_text(*record));
  require(again && again->name == record->name && again->digests.size() == record->digests.size());
  require(parse_model_record(summary_text(*record)).has_value());
}

void check_ollama(std::string_view text) {
  const auto blobs = parse_ollama_manifest(text);
  if (!blobs) return;
  for (const PublishedFile& blob : *blobs)
    require(blob.path.starts_with("blobs/sha256-") && blob.path.size() == 13 + 64 &&
            blob.path.find('/', 6) == std::string::npos);
}

void check_lists(std::string_view text) {
  static_cast<void>(weights_named_in(text));
  for (const auto& [path, file] :
       parse_tree_list(text, "trees").value_or(std::map<std::string, PublishedFile>()))
    require(file.hex.empty() || file.hex.size() == 40 || file.hex.size() == 64);
  const DownloadMetadata metadata = parse_download_metadata(text);
  require(metadata.hex.empty() || metadata.hex.size() == 40 || metadata.hex.size() == 64);
  if (const auto index = parse_git_index(text))
    for (const auto& [path, sha1] : *index) require(sha1.size() == 40);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_weights(text);
  check_record(text);
  check_ollama(text);
  check_lists(text);
  return 0;
}
