#include "migration/survey/survey.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "migration/survey/local_files.hpp"
#include "migration/survey/nvme_cli_files.hpp"

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
  std::vector<std::string> files = {"etc/nvme/nvme-fabrics.conf", "etc/stas/stacd.conf",
                                    "etc/stas/stafd.conf"};
  const std::string drop_ins = "etc/nvme/nvme-fabrics.conf.d";
  for (const std::filesystem::path& entry : list_folder(root / drop_ins))
    files.push_back(drop_ins + "/" + entry.filename().native());
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
  survey.devices = list_fabric_devices(root);
  auto table = mounts::read_mount_table(root);
  if (!table && table.error().kind != Errc::NotFound) survey.unread.push_back(table.error().message());
  survey.mounts = std::move(table).value_or(std::vector<mounts::Mount>());
  const LocalFiles files(root, survey.mounts, survey.devices);
  survey.mount_units = read_mount_units(files);
  survey.units = read_connect_units(files);
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
  for (std::string& sentence : unread_scripts(files)) survey.unread.push_back(std::move(sentence));
  survey.uses = uses_now(root, survey.devices, survey.mounts);
  survey.mount_needs = mount_needs(files);
  for (FstabLine& line : survey.fstab) line.mount = real_path(root, survey.mounts, line.mount);
  for (MountUnit& unit : survey.mount_units)
    unit.mount.mount = real_path(root, survey.mounts, unit.mount.mount);
  return survey;
}

}  // namespace spark::host
