#include "migration/survey.hpp"

#include <filesystem>

#include "base/text.hpp"
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

// Files of other programs that connect. Their connections are known while they run.
void name_unread_formats(const SystemRoot& root, Survey& survey) {
  for (const char* file :
       {"etc/nvme/nvme-fabrics.conf", "etc/nvme/nvme-fabrics.conf.d", "etc/stas/stacd.conf"}) {
    std::error_code error;
    if (!std::filesystem::exists(root / file, error)) continue;
    survey.unread.push_back("/" + std::string(file) +
                            ": its format is not known here; connect what it lists, then import again");
  }
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
  name_unread_formats(root, survey);
  survey.host_nqn = trim(text_of(root, "etc/nvme/hostnqn", survey));
  survey.host_id = trim(text_of(root, "etc/nvme/hostid", survey));
  survey.devices = list_fabric_devices(root);
  survey.mounts = mounts::read_mount_table(root).value_or(std::vector<mounts::Mount>());
  return survey;
}

}  // namespace spark::host
