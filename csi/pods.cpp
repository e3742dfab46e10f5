#include "csi/pods.hpp"

#include <openssl/sha.h>

#include <array>
#include <span>
#include <system_error>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "csi/publication.hpp"

namespace spark::csi {
namespace {

constexpr std::size_t kMostData = 64 << 10;

// Lists a folder that may be deleted meanwhile.
Result<std::vector<std::filesystem::path>> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries = list_folder(folder, error);
  if (error) return fail_errno(error.value(), "listing " + printable(folder.native()));
  return entries;
}

// As kubelet makes the IDs of inline volumes: from the UID of the pod and the name of the volume.
std::string id_of(const std::string& pod, const std::string& name) {
  const std::string text = pod + name;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return "csi-" + hex_of(std::as_bytes(std::span(digest)));
}

// The volume's ID; empty if it belongs to another driver or was deleted meanwhile. A record that can't be
// read, as after a power cut, belongs to no other pod.
std::string volume_in(const std::string& pod, const std::filesystem::path& folder) {
  const auto text = read_file(folder / "vol_data.json", kMostData);
  if (!text && text.error().kind == Errc::NotFound) return "";
  const auto data = text ? parse_json_object(*text) : fail(text.error());
  if (!data) return id_of(pod, folder.filename());
  if (get_string(*data, "driverName") != kDriver) return "";
  return get_text(*data, "volumeHandle");
}

}  // namespace

Result<std::set<std::string>> volumes_of_pods(const std::filesystem::path& kubelet) {
  const auto pods = entries_of(kubelet / "pods");
  if (!pods) return pods.take_error();
  if (pods->empty()) {
    return fail(Errc::NotFound, "no pod in " + printable((kubelet / "pods").native()),
                "is it the folder of this node's kubelet? See --kubelet-dir");
  }
  std::set<std::string> volumes;
  for (const auto& pod : *pods) {
    const auto folders = entries_of(pod / "volumes/kubernetes.io~csi");
    if (!folders && folders.error().kind == Errc::NotFound) continue;  // the pod has no such volumes
    if (!folders) return folders.take_error();
    for (const auto& folder : *folders) {
      auto volume = volume_in(pod.filename(), folder);
      if (!volume.empty()) volumes.insert(std::move(volume));
    }
  }
  return volumes;
}

}  // namespace spark::csi
