#include "migration/survey.hpp"

#include "migration/nvme_cli_files.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

// Empty if there is no such file.
std::string text_of(const SystemRoot& root, const char* file, Survey& survey) {
  auto text = read_file(root / file, kMostBytes);
  if (!text && text.error().kind != Errc::NotFound) survey.unread.push_back(text.error().message());
  return text.value_or("");
}

}  // namespace

Survey survey(const SystemRoot& root) {
  Survey survey;
  survey.fstab = parse_fstab(text_of(root, "etc/fstab", survey));
  survey.units = read_connect_units(root);
  survey.discovery_conf = parse_discovery_conf(text_of(root, "etc/nvme/discovery.conf", survey));
  const std::string json = text_of(root, "etc/nvme/config.json", survey);
  if (!json.empty()) {
    auto parsed = parse_config_json(json);
    if (parsed) {
      survey.config_json = std::move(*parsed);
    } else {
      survey.unread.push_back("/etc/nvme/config.json: " + parsed.error().message());
    }
  }
  survey.devices = list_fabric_devices(root);
  survey.mounts = mounts::read_mount_table(root).value_or(std::vector<mounts::Mount>());
  return survey;
}

}  // namespace spark::host
