#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/models/model_files.hpp"
#include "staging/models/model_folder.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLargestManifest = 4 * kMiB;
constexpr char kManifests[] = "manifests/", kBlob[] = "blobs/sha256-";

// "llama3.2:3b", "me/mine", "hf.co/org/name:Q4_K_M" → below manifests/.
std::string manifest_path_of(const std::string& name) {
  const std::size_t slash = name.rfind('/'), colon = name.find(':', slash == std::string::npos ? 0 : slash);
  const std::string model = name.substr(0, colon);
  const std::string tag = colon == std::string::npos ? "latest" : name.substr(colon + 1);
  const auto parts = std::ranges::count(model, '/');
  const std::string above = parts == 0   ? "registry.ollama.ai/library/"
                            : parts == 1 ? "registry.ollama.ai/"
                                         : "";
  return kManifests + above + model + "/" + tag;
}

Result<> take_blob(const json::value& value, std::vector<PublishedFile>& blobs) {
  constexpr std::string_view kKind = "sha256:";
  const json::object* one = value.if_object();
  const std::string digest = one == nullptr ? "" : get_text(*one, "digest");
  const std::int64_t size = one == nullptr ? -1 : get_int(*one, "size").value_or(-1);
  if (!digest.starts_with(kKind) || size < 0 ||
      !is_hex(std::string_view(digest).substr(kKind.size()), kSha256Digits))
    return fail(Errc::Mismatch, "it is no manifest of ollama");
  const std::string hex = digest.substr(kKind.size());
  blobs.push_back({kBlob + hex, static_cast<Bytes>(size), hex, "its name"});
  return {};
}

}  // namespace

bool is_manifest_of_ollama(std::string_view path) {
  return path.starts_with(kManifests);
}

bool is_blob_of_ollama(std::string_view path) {
  return path.starts_with(kBlob);
}

Result<std::vector<PublishedFile>> parse_ollama_manifest(std::string_view text) {
  const auto manifest = parse_json_object(text);
  const json::value* config = manifest ? manifest->if_contains("config") : nullptr;
  const json::array* layers = manifest ? get_array(*manifest, "layers") : nullptr;
  if (config == nullptr || layers == nullptr) return fail(Errc::Mismatch, "it is no manifest of ollama");
  std::vector<PublishedFile> blobs;
  if (auto taken = take_blob(*config, blobs); !taken) return taken.take_error();
  for (const json::value& layer : *layers)
    if (auto taken = take_blob(layer, blobs); !taken) return taken.take_error();
  std::ranges::sort(blobs, {}, &PublishedFile::path);
  // A subrange of the standard library's is not for clang 14, which builds the fuzzers.
  const auto is_same = [](const PublishedFile& one, const PublishedFile& other) {
    return one.path == other.path;
  };
  blobs.erase(std::unique(blobs.begin(), blobs.end(), is_same), blobs.end());
  return blobs;
}

Result<std::optional<FolderModel>> walk_ollama(Tree& tree, const ModelOptions& wanted, const StopFlag& stop) {
  if (!is_folder(tree, "manifests") || !is_folder(tree, "blobs")) return std::optional<FolderModel>();
  const std::string path = manifest_path_of(wanted.name);
  const std::string pull = "`ollama pull " + printable(wanted.name) + "` downloads it";
  const auto text = read_small(tree, path, kLargestManifest);
  if (!text) return text.take_error();
  if (!*text)
    return fail(Errc::NotFound,
                tree.shown("") + " has no model " + printable(wanted.name) +
                    " of ollama: " + tree.shown(path) + " is not there",
                pull);
  if (!wanted.include.empty() || !wanted.revision.empty())
    return fail(
        Errc::Invalid,
        "model " + printable(wanted.name) + " is ollama's: it has no revisions, and files without names",
        "leave `include` and `revision` out");
  auto blobs = parse_ollama_manifest(**text);
  if (!blobs) return fail_with(std::move(blobs.error()), "reading " + tree.shown(path));
  Parts parts{{}, {path}, {}};
  for (const PublishedFile& blob : *blobs) {
    if (!open_beneath(tree, blob.path, O_PATH))
      return fail(Errc::Mismatch,
                  tree.shown(blob.path) + " is missing, and " + tree.shown(path) + " lists it", pull);
    parts.files.push_back(blob.path);
  }
  auto walked = walk_without_links(tree, parts, tree.root(), stop);
  if (!walked) return walked.take_error();
  FolderModel model;
  model.published = std::move(*blobs);
  for (const PublishedFile& blob : model.published) {
    const auto entry =
        std::ranges::find(walked->entries, blob.path, [](const Entry& one) { return one.path.view(); });
    if (entry == walked->entries.end() || entry->size == blob.size) continue;
    return fail(Errc::Mismatch,
                tree.shown(blob.path) + " has " + std::to_string(entry->size) + " bytes, and " +
                    tree.shown(path) + " says " + std::to_string(blob.size),
                pull);
  }
  model.walked = std::move(*walked);
  return std::optional(std::move(model));
}

}  // namespace spark::staging
