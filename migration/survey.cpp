#include "migration/survey.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "migration/nvme_cli_files.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

// Empty if there is no such file.
std::string text_of(const SystemRoot& root, const std::string& file, Survey& survey) {
  auto text = read_file(root / file, kMostBytes);
  if (!text && text.error().kind != Errc::NotFound) survey.unread.push_back(text.error().message());
  return text.value_or("");
}

// As packages install them, all their lines are comments.
bool lists_controllers(const std::string& text) {
  for (const auto& [key, value] : unit_settings(text)) {
    if ((key == "controller" || key == "nqn") && !value.empty()) return true;
  }
  return false;
}

// Files of other programs that connect. Their connections are known while they run.
void name_unread_formats(const SystemRoot& root, Survey& survey) {
  std::vector<std::string> files = {"etc/nvme/nvme-fabrics.conf", "etc/stas/stacd.conf"};
  const std::string drop_ins = "etc/nvme/nvme-fabrics.conf.d";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root / drop_ins, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    files.push_back(drop_ins + "/" + entry->path().filename().native());
  for (const std::string& file : files) {
    if (!lists_controllers(text_of(root, file, survey))) continue;
    survey.unread.push_back("/" + file +
                            ": its format is not known here; connect what it lists, then import again");
  }
}

}  // namespace

Survey survey(const SystemRoot& root) {
  Survey survey;
  survey.fstab = parse_fstab(text_of(root, "etc/fstab", survey));
  survey.mount_units = read_mount_units(root);
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
  for (std::string& sentence : unread_scripts(root)) survey.unread.push_back(std::move(sentence));
  survey.host_nqn = trim(text_of(root, "etc/nvme/hostnqn", survey));
  survey.host_id = trim(text_of(root, "etc/nvme/hostid", survey));
  survey.devices = list_fabric_devices(root);
  survey.mounts = mounts::read_mount_table(root).value_or(std::vector<mounts::Mount>());
  return survey;
}

}  // namespace spark::host
