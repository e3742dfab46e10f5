#include "csi/publication.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::csi {
namespace {

constexpr char kDataset[] = "dataset", kOutput[] = "output", kNow[] = "now";
// Prefix of the attributes that kubelet adds (podInfoOnMount).
constexpr char kOfKubelet[] = "csi.storage.k8s.io/";
constexpr std::size_t kLongestWord = 256;

std::string in_quotes(std::string_view word) {
  return "'" + printable(word.substr(0, kLongestWord)) + "'";
}

std::string attribute(const PublishRequest& request, const std::string& key) {
  const auto found = request.context.find(key);
  return found == request.context.end() ? "" : found->second;
}

std::string of_kubelet(const PublishRequest& request, const std::string& key) {
  return attribute(request, kOfKubelet + key);
}

Result<> check_attributes(const PublishRequest& request) {
  for (const auto& [key, value] : request.context) {
    if (key == kDataset || key == kOutput || key == kNow || key.starts_with(kOfKubelet)) continue;
    return fail(
        Errc::Invalid, "volumeAttributes: unknown key " + in_quotes(key),
        "the keys are 'dataset' and 'output', each with a name of the node's configuration, and 'now'");
  }
  return {};
}

// Anyone with the right to create pods can write this, so only datasets and outputs configured by an
// administrator are served.
Result<> read_source(const PublishRequest& request, Publication& publication) {
  publication.dataset = attribute(request, kDataset);
  publication.output = attribute(request, kOutput);
  if (publication.dataset.empty() == publication.output.empty()) {
    return fail(Errc::Invalid,
                publication.is_output() ? "volumeAttributes has both 'dataset' and 'output'"
                                        : "volumeAttributes has neither 'dataset' nor 'output'",
                "a volume is one of them: {dataset: NAME} or {output: NAME}, with a name of the node's "
                "configuration");
  }
  const std::string& name = publication.is_output() ? publication.output : publication.dataset;
  if (name.find(':') == std::string::npos) return {};
  return fail(Errc::Invalid, "volumeAttributes: " + in_quotes(name) + " is a path on a volume, not a name",
              "pods may use only names of the node's configuration");
}

// A YAML boolean would be no attribute: they are strings.
Result<> read_now(const PublishRequest& request, Publication& publication) {
  const std::string now = attribute(request, kNow);
  publication.now = now == "true";
  if (publication.now && publication.is_output())
    return fail(Errc::Invalid, "volumeAttributes: 'now' is for a dataset, and this is an output",
                "leave it out");
  if (publication.now || now == "false" || !request.context.contains(kNow)) return {};
  return fail(Errc::Invalid, "volumeAttributes: now is " + in_quotes(now),
              "it is \"true\" to start before the copy is complete, or \"false\"");
}

Result<> check_capability(const PublishRequest& request) {
  if (request.is_block) {
    return fail(Errc::Invalid, "a block device was asked for, and a dataset is a folder of files",
                "leave volumeMode out");
  }
  if (!request.is_mount) return fail(Errc::Invalid, "the call has no volume capability");
  const auto is_harmless = [](const std::string& flag) {
    return flag == "ro" || flag == "nosuid" || flag == "nodev";
  };
  const auto other = std::ranges::find_if_not(request.mount_flags, is_harmless);
  if (other == request.mount_flags.end()) return {};
  return fail(Errc::Invalid, "the mount option " + in_quotes(*other) + " is not supported",
              "datasets are always mounted with ro,nosuid,nodev");
}

}  // namespace

Result<> check_volume_id(std::string_view id) {
  constexpr std::size_t kLongest = 128;
  constexpr std::string_view kAllowed = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_+.-";
  if (id.empty()) return fail(Errc::Invalid, "the call has no volume ID");
  if (id.size() <= kLongest && id.find_first_not_of(kAllowed) == std::string_view::npos) return {};
  return fail(Errc::Invalid, in_quotes(id) + " is not a volume ID that kubelet makes for a pod's own volume",
              "write the volume into the pod as csi: {driver: " + std::string(kDriver) + "}");
}

Result<std::filesystem::path> read_target_path(const std::string& path) {
  if (path.empty()) return fail(Errc::Invalid, "the call has no target path");
  std::filesystem::path target = std::filesystem::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (target.is_absolute() && target != "/" && path.find('\0') == std::string::npos) return target;
  return fail(Errc::Invalid, "the target path " + in_quotes(path) + " is not an absolute path below /");
}

Result<Publication> read_publication(const PublishRequest& request) {
  if (auto valid = check_volume_id(request.volume_id); !valid) return valid.take_error();
  auto target = read_target_path(request.target_path);
  if (!target) return target.take_error();
  if (auto fits = check_capability(request); !fits) return fits.take_error();
  if (of_kubelet(request, "ephemeral") == "false") {
    return fail(Errc::Invalid,
                "a persistent volume was asked for, and only a pod's own (ephemeral) volumes are served",
                "write the volume into the pod, and 'Ephemeral' into the CSIDriver's volumeLifecycleModes");
  }
  if (auto known = check_attributes(request); !known) return known.take_error();
  Publication publication;
  publication.volume = request.volume_id;
  publication.target = std::move(*target);
  publication.pod_namespace = of_kubelet(request, "pod.namespace");
  if (auto read = read_source(request, publication); !read) return read.take_error();
  if (auto read = read_now(request, publication); !read) return read.take_error();
  const std::string name = of_kubelet(request, "pod.name");
  if (!publication.pod_namespace.empty() && !name.empty())
    publication.pod = publication.pod_namespace + "/" + name;
  return publication;
}

}  // namespace spark::csi
